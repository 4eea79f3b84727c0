"""Census: incomes of people, with the columns and values of UCI's "Adult" dataset.

The people are made up. The shares of values follow the real dataset roughly, and whether somebody
earns more than 50,000 depends on age, education, marital status, occupation, hours and gains.
"""

from typing import List

import numpy as np

from elasticdl.data_gen.output import Options, write_csv, write_records
from elasticdl.data_gen.tables import bernoulli, encode_rows, pick

TRAIN_RECORDS, TEST_RECORDS = 32561, 16281
COLUMNS = {
    "age": "float", "workclass": "text", "fnlwgt": "float", "education": "text",
    "education_num": "float", "marital_status": "text", "occupation": "text",
    "relationship": "text", "race": "text", "sex": "text", "capital_gain": "float",
    "capital_loss": "float", "hours_per_week": "float", "native_country": "text", "label": "int",
}
WORKCLASS = {"Private": 70, "Self-emp-not-inc": 8, "Self-emp-inc": 3, "Federal-gov": 3,
             "Local-gov": 6, "State-gov": 4, "Without-pay": 0.1, "Never-worked": 0.1, "?": 5.8}
# In the order of the years of education, which education_num counts.
EDUCATION = {"Preschool": 0.2, "1st-4th": 0.5, "5th-6th": 1, "7th-8th": 2, "9th": 1.6, "10th": 2.9,
             "11th": 3.6, "12th": 1.3, "HS-grad": 32, "Some-college": 22, "Assoc-voc": 4.2,
             "Assoc-acdm": 3.3, "Bachelors": 16, "Masters": 5.3, "Prof-school": 1.8,
             "Doctorate": 1.3}
MARITAL = {"Married-civ-spouse": 46, "Never-married": 33, "Divorced": 14, "Separated": 3,
           "Widowed": 3, "Married-spouse-absent": 1.3, "Married-AF-spouse": 0.1}
OCCUPATION = {"Prof-specialty": 13, "Craft-repair": 13, "Exec-managerial": 12, "Adm-clerical": 12,
              "Sales": 11, "Other-service": 10, "Machine-op-inspct": 6, "?": 6,
              "Transport-moving": 5, "Handlers-cleaners": 4, "Farming-fishing": 3,
              "Tech-support": 3, "Protective-serv": 2, "Priv-house-serv": 0.5,
              "Armed-Forces": 0.1}
OCCUPATION_EFFECTS = {"Prof-specialty": 0.7, "Exec-managerial": 1.0, "Tech-support": 0.6,
                      "Sales": 0.3, "Other-service": -1.0, "Handlers-cleaners": -0.9,
                      "Farming-fishing": -1.0, "Priv-house-serv": -1.5, "Protective-serv": 0.5}
RACE = {"White": 85, "Black": 10, "Asian-Pac-Islander": 3, "Amer-Indian-Eskimo": 1, "Other": 1}
COUNTRY = {"United-States": 90, "Mexico": 2, "?": 1.8, "Philippines": 0.6, "Germany": 0.4,
           "Canada": 0.4, "Puerto-Rico": 0.4, "El-Salvador": 0.3, "India": 0.3, "Cuba": 0.3,
           "England": 0.3, "Jamaica": 0.2, "China": 0.2, "Italy": 0.2, "Japan": 0.2}


def rows(count: int, seed: int) -> List[tuple]:
    """The values of each person in the order of COLUMNS; the label is 1 above 50,000."""
    rng = np.random.default_rng(seed)
    age = (17 + rng.gamma(2.2, 10, count)).clip(17, 90).astype(int)
    education = pick(rng, count, EDUCATION)
    marital = np.where(rng.random(count) < (26 - age) / 10, 1, pick(rng, count, MARITAL))
    married = (marital == 0) | (marital == 6)
    occupation = pick(rng, count, OCCUPATION)
    sex = rng.random(count) < 0.67
    gain = np.where(rng.random(count) < 0.08, rng.lognormal(8.5, 1, count), 0).astype(int)
    loss = np.where(rng.random(count) < 0.05, rng.normal(1870, 370, count).clip(150), 0).astype(int)
    hours = np.where(rng.random(count) < 0.47, 40, rng.normal(41, 15, count))
    hours = hours.clip(1, 99).astype(int)
    relationship = np.select(
        [married & sex, married, age < 23], ["Husband", "Wife", "Own-child"],
        rng.choice(["Not-in-family", "Unmarried", "Other-relative"], count, p=[0.6, 0.3, 0.1]))

    effects = np.array([OCCUPATION_EFFECTS.get(name, 0.0) for name in OCCUPATION])
    score = (-3.1 + 2.4 * married + 0.38 * (education - 9) + effects[occupation]
             - 0.0016 * (age - 50.0) ** 2 + 0.035 * (hours - 40) + 0.0004 * gain
             + 0.0004 * loss)
    label = bernoulli(score, rng)
    return list(zip(
        age.tolist(), names(WORKCLASS, pick(rng, count, WORKCLASS)),
        rng.lognormal(12, 0.5, count).astype(int).tolist(), names(EDUCATION, education),
        (education + 1).tolist(), names(MARITAL, marital), names(OCCUPATION, occupation),
        relationship.tolist(), names(RACE, pick(rng, count, RACE)),
        np.where(sex, "Male", "Female").tolist(), gain.tolist(), loss.tolist(), hours.tolist(),
        names(COUNTRY, pick(rng, count, COUNTRY)), label.tolist()))


def names(values: dict, indices: np.ndarray) -> list:
    return np.array(list(values))[indices].tolist()


def generate(options: Options) -> None:
    for part, count, seed in (("train", TRAIN_RECORDS, options.seed),
                              ("test", TEST_RECORDS, options.seed + 1_000_003)):
        people = rows(options.records(count), seed)
        write_records(options, part, encode_rows(COLUMNS, people))
        write_csv(options, part, people)

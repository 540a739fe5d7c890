#!/usr/bin/env python3
"""Ranks the skills of a set for its requests, as a peer of bench/routing.exs, which calls it.

    python bench/routing_peers.py SET [MODEL]

SET is a folder with skills.jsonl and requests.jsonl, see bench/routing_sets.py. MODEL is the folder
of a sentence-transformers model. Prints one JSON object per ranking: its name, and for each request
the rank of the first right skill, or null. Needs the packages rank-bm25 and snowballstemmer, and
sentence-transformers for a model.
"""

import json
import os
import re
import sys

import numpy
import snowballstemmer
from rank_bm25 import BM25Okapi

FUNCTION_WORDS = set(
    """a about am an and any are as at be been being but by can could did do does for from had has
    have he her here him his how i if in into is it its me my no nor not of on or our she should so
    some than that the their them then there these they this those to us was we were what when where
    which who whom whose why will with would you your""".split()
)
STEMMER = snowballstemmer.stemmer("english")


def plain(text):
    return re.findall(r"\w+", text.lower())


def cut(text):
    words = re.findall(r"[^\W_]+", text.lower())
    return STEMMER.stemWords([word for word in words if word not in FUNCTION_WORDS])


def groups(text):
    text = " " + " ".join(re.findall(r"[^\W_]+", text.lower())) + " "
    return [text[at : at + 4] for at in range(len(text) - 3)]


def read(file):
    with open(file, encoding="utf-8") as opened:
        return [json.loads(line) for line in opened]


def ranks(names, rights, scores):
    """By falling score, equal ones by name. Skills without a score are not found."""
    found = []
    for right, row in zip(rights, scores):
        row = numpy.round(numpy.asarray(row, dtype=float), 6)
        order = [at for at in numpy.argsort(-row, kind="stable") if row[at] > 0]
        found.append(next((n for n, at in enumerate(order, 1) if names[at] in right), None))
    return found


def main(folder, model=None):
    skills = sorted(read(os.path.join(folder, "skills.jsonl")), key=lambda skill: skill["name"])
    requests = read(os.path.join(folder, "requests.jsonl"))
    names = [skill["name"] for skill in skills]
    texts = [skill["name"] + " " + skill["description"] for skill in skills]
    queries = [request["text"] for request in requests]
    rights = [
        {request["skill"]} if isinstance(request["skill"], str) else set(request["skill"])
        for request in requests
    ]

    def show(name, scores):
        print(json.dumps({"name": name, "ranks": ranks(names, rights, scores)}), flush=True)

    for name, terms in [
        ("rank_bm25", plain),
        ("rank_bm25, endings cut", cut),
        ("rank_bm25, 4 letters", groups),
    ]:
        bm25 = BM25Okapi([terms(text) for text in texts])
        show(name, [bm25.get_scores(terms(query)) for query in queries])
    if model:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(model, device="cpu")
        described = [f"{skill['name']}: {skill['description']}" for skill in skills]
        vectors = [model.encode(all, normalize_embeddings=True) for all in (described, queries)]
        show("sentence-transformers", vectors[1] @ vectors[0].T)


main(*sys.argv[1:])

#!/usr/bin/env python3
"""Writes public sets of requests in the format of bench/routing.exs.

    python3 bench/routing_sets.py FOLDER PROJECT=DIR...

DIR is a checkout or a git directory of the project. The projects, and the sets made from them:

    ToolAlpaca   tangqiaoyu/ToolAlpaca           toolalpaca, toolalpaca-functions
    API-Bank     AlibabaResearch/DAMO-ConvAI     api-bank
    ToolBench    OpenBMB/ToolBench               toolbench
    BFCL         ShishirPatil/gorilla            bfcl-live
    Seal-Tools   fairyshine/Seal-Tools           seal-tools
    MetaTool     HowieHwong/MetaTool             metatool

A set is a folder with two files of one JSON object per line:

    skills.jsonl     {"name": "send_email", "description": "Sends an email."}
    requests.jsonl   {"text": "Tell Ann that I am late", "skill": "send_email", "half": "tuning"}

"skill" is the name of the right skill, or a list of names that are all right. "half" is "tuning"
or "untouched", by a hash of the text, and may be missing. MetaTool is untouched as a whole.
Needs Python 3.9 and git, and no packages.
"""

import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys


class Project:
    def __init__(self, folder):
        self.folder = folder

    def read(self, path):
        file = os.path.join(self.folder, path)
        if os.path.isfile(file):
            with open(file, encoding="utf-8") as opened:
                return opened.read()
        return self.git("show", "HEAD:" + path)

    def list(self, folder):
        if os.path.isdir(os.path.join(self.folder, folder)):
            return sorted(os.listdir(os.path.join(self.folder, folder)))
        names = self.git("ls-tree", "--name-only", "HEAD", folder + "/").splitlines()
        return sorted(os.path.basename(name) for name in names)

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", self.folder, *arguments], capture_output=True)
        if done.returncode != 0:
            sys.exit(f"git {' '.join(arguments)} in {self.folder}: {done.stderr.decode().strip()}")
        return done.stdout.decode("utf-8")


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def one_line(text):
    return " ".join(text.split())


def toolalpaca(project):
    """All public APIs with one-line descriptions; requests for the 21 of the test sets."""
    skills = {}
    for entry in json.loads(project.read("data/public_apis.json"))["entries"]:
        skills.setdefault(entry["API"], entry["Description"])
    requests = []
    for tool in toolalpaca_tools(project):
        skills.setdefault(tool["Name"], tool["Description"])
        requests += [(text, [tool["Name"]]) for text in tool["Instructions"]]
    return skills, requests


def toolalpaca_functions(project):
    """The functions of the 21 APIs; requests that need one of them."""
    skills, requests = {}, []
    for tool in toolalpaca_tools(project):
        for name, description in tool["Function_Description"].items():
            if name != "components":
                skills.setdefault(name, description.split("\nParameters:")[0])
        for text, calls in zip(tool["Instructions"], tool["Golden_Answers"]):
            # Requests with several calls have no single right answer.
            if len(calls) == 1 and calls[0]["Action"] in tool["Function_Description"]:
                requests.append((text, [calls[0]["Action"]]))
    return skills, requests


def toolalpaca_tools(project):
    files = ["data/eval_simulated.json", "data/eval_real.json"]
    return [tool for file in files for tool in json.loads(project.read(file))]


def api_bank(project):
    """Its APIs; the first message of each dialogue about one API."""
    skills = {}
    for row in csv.DictReader(io.StringIO(project.read("api-bank/data/all_apis.csv"))):
        found = re.search(r'description = (["\'])(.*?)\1\n', row["api_info"])
        if found and row["类名"]:
            skills.setdefault(row["类名"], found.group(2))
    for folder in ["apis", "lv3_apis"]:
        for file in project.list("api-bank/" + folder):
            text = project.read(f"api-bank/{folder}/{file}") if file.endswith(".py") else ""
            found = re.search(r"class (\w+)\(API\):\s+description = ([\"'])(.*?)\2\n", text)
            if found:
                skills.setdefault(found.group(1), found.group(3))
    requests = []
    folder = "api-bank/lv1-lv2-samples/level-1-given-desc"
    for file in project.list(folder):
        turns = lines(project.read(f"{folder}/{file}"))
        calls = {turn["api_name"] for turn in turns if turn["role"] == "API"}
        # A token comes before most calls.
        calls = calls - {"GetUserToken"} or calls
        texts = [turn["text"] for turn in turns if turn["role"] == "User"]
        if texts and len(calls) == 1 and calls <= skills.keys():
            requests.append((texts[0], list(calls)))
    return skills, requests


def toolbench(project):
    """The tools of its test sets, described by their functions; any tool of a request is right."""
    functions, requests = {}, []
    folder = "toolbench/tooleval/results/default_evalset/gpt-3.5-turbo_CoT"
    pattern = r'subfunction for tool "([^"]+)".*?description of this function is: "(.*)"\s*$'
    for file in project.list(folder):
        for request in json.loads(project.read(f"{folder}/{file}")).values():
            right = []
            for function in request["available_tools"]:
                found = re.search(pattern, function.get("description", ""), re.S)
                if found:
                    tool, text = found.groups()
                    # Functions without a description repeat their name.
                    text = text.replace(f"_for_{tool}", "").replace("_", " ")
                    if text not in functions.setdefault(tool, []):
                        functions[tool].append(text)
                    right.append(tool)
            requests.append((request["query"], sorted(set(right))))
    skills = {tool: one_line(". ".join(texts))[:400] for tool, texts in functions.items()}
    return skills, requests


def bfcl_live(project):
    """The functions of its live sets, and requests of people that need one of them."""
    folder = "berkeley-function-call-leaderboard/bfcl_eval/data/"
    skills, requests = {}, []
    for file in ["BFCL_v4_live_simple.json", "BFCL_v4_live_multiple.json"]:
        answers = lines(project.read(folder + "possible_answer/" + file))
        right = {answer["id"]: list(answer["ground_truth"][0]) for answer in answers}
        for request in lines(project.read(folder + file)):
            for function in request["function"]:
                skills.setdefault(function["name"], function["description"])
            texts = [turn["content"] for turn in request["question"][0] if turn["role"] == "user"]
            if len(request["question"]) == 1 and len(texts) == 1 and request["id"] in right:
                requests.append((texts[0], right[request["id"]]))
    return skills, requests


def seal_tools(project):
    """Its 4,076 generated tools, and requests that need one of them."""
    folder = "Seal-Tools_Dataset/"
    tools = lines(project.read(folder + "tool.jsonl"))
    skills = {tool["api_name"]: tool["api_description"] for tool in tools}
    requests = []
    for file in ["dev.jsonl", "test_in_domain.jsonl", "test_out_domain.jsonl"]:
        for request in lines(project.read(folder + file)):
            if len(request["calling"]) == 1:
                requests.append((request["query"], [request["calling"][0]["api"]]))
    return skills, requests


def metatool(project):
    """Its 199 plugins; 2,000 requests, chosen by their hashes."""
    skills = json.loads(project.read("dataset/plugin_des.json"))
    rows = csv.DictReader(io.StringIO(project.read("dataset/data/all_clean_data.csv")))
    right = {one_line(row["Query"]): row["Tool"] for row in rows if row["Tool"] in skills}
    texts = sorted(filter(None, right), key=hash_of)[:2000]
    return skills, [(text, [right[text]]) for text in texts]


SETS = {
    "ToolAlpaca": {"toolalpaca": toolalpaca, "toolalpaca-functions": toolalpaca_functions},
    "API-Bank": {"api-bank": api_bank},
    "ToolBench": {"toolbench": toolbench},
    "BFCL": {"bfcl-live": bfcl_live},
    "Seal-Tools": {"seal-tools": seal_tools},
    "MetaTool": {"metatool": metatool},
}


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder, name, skills, requests):
    os.makedirs(os.path.join(folder, name), exist_ok=True)

    def save(file, rows):
        with open(os.path.join(folder, name, file), "w", encoding="utf-8") as opened:
            opened.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    skills = {one_line(key): one_line(text) for key, text in skills.items()}
    seen, rows = set(), []
    for text, right in requests:
        text = one_line(text)
        right = [one_line(one) for one in right if one_line(one) in skills]
        if text and right and text not in seen:
            seen.add(text)
            half = "tuning" if int(hash_of(text), 16) % 2 else "untouched"
            half = "untouched" if name == "metatool" else half
            right = right[0] if len(right) == 1 else right
            rows.append({"text": text, "skill": right, "half": half})
    save("skills.jsonl", [{"name": key, "description": text} for key, text in skills.items()])
    save("requests.jsonl", rows)
    print(f"{name}: {len(skills)} skills, {len(rows)} requests")


def main(arguments):
    pairs = [argument.split("=", 1) for argument in arguments[1:]]
    if len(arguments) < 2 or any(len(pair) != 2 or pair[0] not in SETS for pair in pairs):
        sys.exit(__doc__)
    for project, folder in pairs:
        for name, make in SETS[project].items():
            write(arguments[0], name, *make(Project(folder)))


main(sys.argv[1:])

"""Reads a JSON list of schemas and of grammars, which are texts, and prints for each the reason why
llama.cpp cannot read it, or null.

    python test/support/llama/schemas.py model.gguf <schemas.json

The server answers a whole request with an error for one such schema, or with any JSON.
"""

import json
import sys

import llama_cpp
from llama_cpp.llama_grammar import json_schema_to_gbnf

MODEL = sys.argv[1]


def reason(vocabulary, schema):
    try:
        grammar = schema if isinstance(schema, str) else json_schema_to_gbnf(json.dumps(schema))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
    if not sampler:
        return f"no grammar: {grammar[:300]}"
    llama_cpp.llama_sampler_free(sampler)
    return None


schemas = json.load(sys.stdin)
model = llama_cpp.Llama(MODEL, vocab_only=True, verbose=False)
vocabulary = llama_cpp.llama_model_get_vocab(model.model)
json.dump([reason(vocabulary, schema) for schema in schemas], sys.stdout)

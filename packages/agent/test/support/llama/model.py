"""Writes a tiny language model with random weights, for tests of llama.cpp's server.

    python test/support/llama/model.py model.gguf

Its tokens are single bytes, so it needs no file of words. It writes nonsense, unless a grammar or
a schema says otherwise, and gives every text some vector. The weights are the same each time.
"""

import sys

import gguf
import numpy as np

SIZE, WIDE, LAYERS, HEADS, CONTEXT = 64, 128, 2, 4, 4096
# The most common letters after the bytes, which makes texts shorter.
PIECES = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
PIECES += ["\u2581"] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "assistant:"
)

random = np.random.default_rng(15)


def weights(*shape):
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("tiny")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(SIZE)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(WIDE)
writer.add_head_count(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(SIZE // HEADS)
writer.add_vocab_size(len(PIECES))
writer.add_pooling_type(gguf.PoolingType.MEAN)
writer.add_tokenizer_model("llama")
writer.add_token_list(PIECES)
writer.add_token_scores([0.0] * len(PIECES))
types = gguf.TokenType
writer.add_token_types(
    [types.UNKNOWN, types.CONTROL, types.CONTROL]
    + [types.BYTE] * 256
    + [types.NORMAL] * (len(PIECES) - 259)
)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_unk_token_id(0)
writer.add_chat_template(TEMPLATE)

writer.add_tensor("token_embd.weight", weights(len(PIECES), SIZE))
writer.add_tensor("output_norm.weight", np.ones(SIZE, dtype=np.float32))
writer.add_tensor("output.weight", weights(len(PIECES), SIZE))
for layer in range(LAYERS):
    name = f"blk.{layer}"
    writer.add_tensor(f"{name}.attn_norm.weight", np.ones(SIZE, dtype=np.float32))
    writer.add_tensor(f"{name}.ffn_norm.weight", np.ones(SIZE, dtype=np.float32))
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"{name}.{part}.weight", weights(SIZE, SIZE))
    writer.add_tensor(f"{name}.ffn_gate.weight", weights(WIDE, SIZE))
    writer.add_tensor(f"{name}.ffn_up.weight", weights(WIDE, SIZE))
    writer.add_tensor(f"{name}.ffn_down.weight", weights(SIZE, WIDE))

writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

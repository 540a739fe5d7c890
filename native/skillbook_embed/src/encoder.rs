//! The transformer: from the tokens of several texts to a vector for each.
//!
//! The tokens of all texts are rows of one matrix. Only attention looks at one text at a time, so
//! no text is padded to the length of another.

use crate::config::{Activation, Config, Family, Pooling};
use crate::error::Error;
use crate::math::{gelu, gelu_tanh, multiply, relu, softmax, sum, LayerNorm, Linear, View};
use crate::weights::Weights;

pub struct Encoder {
    hidden: usize,
    heads: usize,
    activation: Activation,
    pooling: Pooling,
    words: Vec<f32>,
    /// A row for each position from the first one, with the type of tokens added.
    positions: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    /// For each bucket of distances a bias for each head.
    distances: Option<Distances>,
}

struct Layer {
    /// Query, key and value of all heads, one after the other.
    attention: Linear,
    attended: Linear,
    attention_norm: LayerNorm,
    wide: Linear,
    narrow: Linear,
    norm: LayerNorm,
}

struct Distances {
    buckets: usize,
    bias: Vec<f32>,
}

/// The names of a family's weights, after `prefix` and the layer's number.
struct Names {
    layers: &'static str,
    attention: [&'static str; 3],
    attended: &'static str,
    attention_norm: &'static str,
    wide: &'static str,
    narrow: &'static str,
    norm: &'static str,
}

const BERT: Names = Names {
    layers: "encoder.layer",
    attention: ["attention.self.query", "attention.self.key", "attention.self.value"],
    attended: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    wide: "intermediate.dense",
    narrow: "output.dense",
    norm: "output.LayerNorm",
};

const MPNET: Names = Names {
    attention: ["attention.attn.q", "attention.attn.k", "attention.attn.v"],
    attended: "attention.attn.o",
    attention_norm: "attention.LayerNorm",
    ..BERT
};

const DISTIL_BERT: Names = Names {
    layers: "transformer.layer",
    attention: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attended: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    wide: "ffn.lin1",
    narrow: "ffn.lin2",
    norm: "output_layer_norm",
};

/// The name before those of all weights, in files of models with further parts.
pub fn prefix(family: Family) -> &'static str {
    match family {
        Family::Bert => "bert",
        Family::DistilBert => "distilbert",
        Family::Mpnet => "mpnet",
        Family::Roberta => "roberta",
    }
}

impl Encoder {
    pub fn new(config: &Config, weights: &Weights<'_>) -> Result<Encoder, Error> {
        let hidden = config.hidden;
        let norm = |name: &str| -> Result<LayerNorm, Error> {
            Ok(LayerNorm {
                weight: weights.get(&format!("{name}.weight"), &[hidden])?,
                bias: weights.get(&format!("{name}.bias"), &[hidden])?,
                epsilon: config.epsilon,
            })
        };
        let linear = |name: &str, outputs: usize, inputs: usize| -> Result<Linear, Error> {
            let weight = weights.get(&format!("{name}.weight"), &[outputs, inputs])?;
            Ok(Linear::new(&weight, weights.get(&format!("{name}.bias"), &[outputs])?))
        };

        let names = match config.family {
            Family::Bert | Family::Roberta => BERT,
            Family::Mpnet => MPNET,
            Family::DistilBert => DISTIL_BERT,
        };
        let mut layers = Vec::new();
        for number in 0..config.layers {
            let of = |name: &str| format!("{}.{number}.{name}", names.layers);
            let (mut weight, mut bias) = (Vec::new(), Vec::new());
            for name in names.attention {
                weight.extend(weights.get(&of(&format!("{name}.weight")), &[hidden, hidden])?);
                bias.extend(weights.get(&of(&format!("{name}.bias")), &[hidden])?);
            }
            layers.push(Layer {
                attention: Linear::new(&weight, bias),
                attended: linear(&of(names.attended), hidden, hidden)?,
                attention_norm: norm(&of(names.attention_norm))?,
                wide: linear(&of(names.wide), config.intermediate, hidden)?,
                narrow: linear(&of(names.narrow), hidden, config.intermediate)?,
                norm: norm(&of(names.norm))?,
            });
        }

        let mut positions =
            weights.get("embeddings.position_embeddings.weight", &[config.positions, hidden])?;
        positions.drain(..config.first_position * hidden);
        positions.truncate(config.max_tokens * hidden);
        if config.types > 0 {
            let types =
                weights.get("embeddings.token_type_embeddings.weight", &[config.types, hidden])?;
            for row in positions.chunks_exact_mut(hidden) {
                row.iter_mut().zip(&types).for_each(|(x, add)| *x += add);
            }
        }
        let distances = match config.distances {
            0 => None,
            buckets => Some(Distances {
                buckets,
                bias: weights
                    .get("encoder.relative_attention_bias.weight", &[buckets, config.heads])?,
            }),
        };
        Ok(Encoder {
            hidden,
            heads: config.heads,
            activation: config.activation,
            pooling: config.pooling,
            words: weights
                .get("embeddings.word_embeddings.weight", &[config.vocabulary, hidden])?,
            positions,
            norm: norm("embeddings.LayerNorm")?,
            layers,
            distances,
        })
    }

    pub fn size(&self) -> usize {
        self.hidden
    }

    pub fn vocabulary(&self) -> usize {
        self.words.len() / self.hidden
    }

    /// A vector of the length 1 for each text. Each has at least one token, at most `max_tokens`,
    /// and no token outside of the vocabulary.
    pub fn encode(&self, texts: &[&[u32]]) -> Vec<Vec<f32>> {
        let hidden = self.hidden;
        let tokens: usize = texts.iter().map(|tokens| tokens.len()).sum();
        let mut rows = Vec::with_capacity(tokens * hidden);
        for text in texts {
            for (token, position) in text.iter().zip(self.positions.chunks_exact(hidden)) {
                let start = *token as usize * hidden;
                let word = &self.words[start..start + hidden];
                rows.extend(word.iter().zip(position).map(|(a, b)| a + b));
            }
        }
        self.norm.apply(&mut rows);

        let biases: Vec<_> = texts.iter().map(|text| self.bias(text.len())).collect();
        let mut projected = vec![0.0; tokens * 3 * hidden];
        let mut attended = vec![0.0; tokens * hidden];
        let mut wide = Vec::new();
        for layer in &self.layers {
            layer.attention.apply(&rows, &mut projected, false);
            let mut start = 0;
            for (text, bias) in texts.iter().zip(&biases) {
                let range = start..start + text.len();
                self.attend(
                    &projected[range.start * 3 * hidden..range.end * 3 * hidden],
                    bias.as_deref(),
                    &mut attended[range.start * hidden..range.end * hidden],
                );
                start = range.end;
            }
            layer.attended.apply(&attended, &mut rows, true);
            layer.attention_norm.apply(&mut rows);
            wide.resize(tokens * layer.wide.outputs(), 0.0);
            layer.wide.apply(&rows, &mut wide, false);
            match self.activation {
                Activation::Gelu => gelu(&mut wide),
                Activation::GeluTanh => gelu_tanh(&mut wide),
                Activation::Relu => relu(&mut wide),
            }
            layer.narrow.apply(&wide, &mut rows, true);
            layer.norm.apply(&mut rows);
        }

        let mut rest = &rows[..];
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let (own, others) = rest.split_at(text.len() * hidden);
            vectors.push(self.pool(own));
            rest = others;
        }
        vectors
    }

    /// Attention within one text. `projected` has rows of query, key and value.
    fn attend(&self, projected: &[f32], bias: Option<&[f32]>, attended: &mut [f32]) {
        let (hidden, size) = (self.hidden, self.hidden / self.heads);
        let count = attended.len() / hidden;
        let scale = 1.0 / (size as f32).sqrt();
        let mut scores = vec![0.0; count * count];
        let all = View::whole(count, count);
        for head in 0..self.heads {
            let part =
                |which: usize| View::part(which * hidden + head * size, count, size, 3 * hidden);
            let add = if let Some(bias) = bias {
                scores.copy_from_slice(&bias[head * count * count..(head + 1) * count * count]);
                true
            } else {
                false
            };
            multiply(
                scale,
                (projected, part(0)),
                (projected, part(1).transposed()),
                (&mut scores, all),
                add,
            );
            scores.chunks_exact_mut(count).for_each(softmax);
            multiply(
                1.0,
                (&scores, all),
                (projected, part(2)),
                (attended, View::part(head * size, count, size, hidden)),
                false,
            );
        }
    }

    /// For each head the bias of each pair of tokens.
    fn bias(&self, count: usize) -> Option<Vec<f32>> {
        let distances = self.distances.as_ref()?;
        let mut bias = Vec::with_capacity(self.heads * count * count);
        for head in 0..self.heads {
            for from in 0..count {
                for to in 0..count {
                    let bucket = bucket(from, to, distances.buckets);
                    bias.push(distances.bias[bucket * self.heads + head]);
                }
            }
        }
        Some(bias)
    }

    fn pool(&self, rows: &[f32]) -> Vec<f32> {
        let mut vector = rows[..self.hidden].to_vec();
        if self.pooling == Pooling::Mean {
            for row in rows.chunks_exact(self.hidden).skip(1) {
                vector.iter_mut().zip(row).for_each(|(x, add)| *x += add);
            }
        }
        let length = sum(&vector, |x| x * x).sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
        vector
    }
}

/// The bucket of the distance between two tokens, as MPNet has it: one for each short distance, and
/// wider ones up to 128.
fn bucket(from: usize, to: usize, buckets: usize) -> usize {
    const FAR: f32 = 128.0;
    let half = buckets / 2;
    let exact = half / 2;
    let side = if to > from { half } else { 0 };
    let distance = from.abs_diff(to);
    if distance < exact {
        return side + distance;
    }
    let near = exact as f32;
    let steps = (distance as f32 / near).ln() / (FAR / near).ln() * (half - exact) as f32;
    side + (exact + steps as usize).min(half - 1)
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn distances_have_buckets() {
        // Results of the function of the transformers library.
        let rows = [
            (0, 0, 0),
            (5, 4, 1),
            (4, 5, 17),
            (7, 0, 7),
            (8, 0, 8),
            (0, 8, 24),
            (12, 0, 9),
            (0, 20, 26),
            (90, 0, 14),
            (127, 0, 15),
            (400, 0, 15),
            (0, 400, 31),
        ];
        for (from, to, expected) in rows {
            assert_eq!(bucket(from, to, 32), expected, "{from} to {to}");
        }
    }
}

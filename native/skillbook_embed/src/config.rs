//! The settings of a model: its architecture, the pooling of its vectors and the length of texts.

use serde_json::Value;

use crate::error::Error;
use crate::folder::{is_inside, shown, Folder, Settings};

/// Models that differ in the names of their weights and in details of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    Bert,
    DistilBert,
    Mpnet,
    /// Also XLM-RoBERTa.
    Roberta,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    Gelu,
    /// Gelu by the hyperbolic tangent.
    GeluTanh,
    Relu,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pooling {
    /// The average of all tokens.
    Mean,
    /// The first token.
    First,
}

/// All of it is part of the model's fingerprint, so no vector outlives a change.
#[derive(Debug)]
pub struct Config {
    pub family: Family,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub intermediate: usize,
    pub positions: usize,
    /// The position of the first token.
    pub first_position: usize,
    pub vocabulary: usize,
    /// The number of token types, of which only the first is used; 0 without types.
    pub types: usize,
    /// The number of different distances between tokens; 0 without a bias for distances.
    pub distances: usize,
    pub epsilon: f32,
    pub activation: Activation,
    pub pooling: Pooling,
    /// Tokens of a text, special ones included.
    pub max_tokens: usize,
    pub lower_case: bool,
}

const MAX_HIDDEN: usize = 8192;
const MAX_LAYERS: usize = 128;
const MAX_POSITIONS: usize = 32_768;
const MAX_VOCABULARY: usize = 2_000_000;
/// Enough for the special tokens and some words.
const MIN_TOKENS: usize = 8;

const CONFIG: &str = "config.json";

impl Config {
    pub fn read(folder: &Folder) -> Result<Config, Error> {
        let Some(config) = folder.settings(CONFIG)? else {
            return Err(Error::new(
                CONFIG,
                "not found; expected the folder of a sentence-transformers model, with \
                 config.json, tokenizer.json and model.safetensors",
            ));
        };
        let family = config.choice(
            "model_type",
            &[
                ("bert", Family::Bert),
                ("distilbert", Family::DistilBert),
                ("mpnet", Family::Mpnet),
                ("roberta", Family::Roberta),
                ("xlm-roberta", Family::Roberta),
            ],
        )?;
        let distil = family == Family::DistilBert;
        let name = |usual, of_distil| if distil { of_distil } else { usual };

        let hidden = config.whole(name("hidden_size", "dim"), 1..=MAX_HIDDEN)?;
        let heads = config.whole(name("num_attention_heads", "n_heads"), 1..=hidden)?;
        if hidden % heads != 0 {
            let divisor = format!("a divisor of {hidden}");
            return Err(config.error(name("num_attention_heads", "n_heads"), &divisor));
        }
        if config.get("position_embedding_type").is_some() {
            config.choice("position_embedding_type", &[("absolute", ())])?;
        }
        if config.flag("is_decoder")? {
            return Err(config.error("is_decoder", "false"));
        }
        let positions = config.whole("max_position_embeddings", MIN_TOKENS..=MAX_POSITIONS)?;
        let first_position = match family {
            Family::Bert | Family::DistilBert => 0,
            Family::Mpnet | Family::Roberta if config.get("pad_token_id").is_none() => 2,
            Family::Mpnet | Family::Roberta => {
                config.whole("pad_token_id", 0..=positions - MIN_TOKENS - 1)? + 1
            }
        };
        let distances = match (family, config.get("relative_attention_num_buckets")) {
            (Family::Mpnet, None) => 32,
            (Family::Mpnet, Some(_)) => config.whole("relative_attention_num_buckets", 4..=1024)?,
            _ => 0,
        };

        let (pooling, transformer) = modules(folder)?;
        if !transformer.is_empty() {
            return Err(Error::expected(
                "modules.json",
                "the path \"\" of the module Transformer",
                format!("{transformer:?}; use that folder's files"),
            ));
        }
        let (max_tokens, lower_case) = length(folder, positions - first_position)?;

        Ok(Config {
            family,
            hidden,
            layers: config.whole(name("num_hidden_layers", "n_layers"), 1..=MAX_LAYERS)?,
            heads,
            intermediate: config
                .whole(name("intermediate_size", "hidden_dim"), 1..=MAX_HIDDEN * 8)?,
            positions,
            first_position,
            vocabulary: config.whole("vocab_size", 1..=MAX_VOCABULARY)?,
            types: match family {
                Family::Bert | Family::Roberta => config.whole("type_vocab_size", 1..=16)?,
                Family::DistilBert | Family::Mpnet => 0,
            },
            distances,
            epsilon: if distil { 1e-12 } else { config.number("layer_norm_eps", 1e-12)? },
            activation: config.choice(
                name("hidden_act", "activation"),
                &[
                    ("gelu", Activation::Gelu),
                    ("gelu_new", Activation::GeluTanh),
                    ("gelu_pytorch_tanh", Activation::GeluTanh),
                    ("relu", Activation::Relu),
                ],
            )?,
            pooling,
            max_tokens,
            lower_case,
        })
    }
}

/// The pooling, and the path of the transformer. Without `modules.json` it is the average, as in
/// sentence-transformers.
fn modules(folder: &Folder) -> Result<(Pooling, String), Error> {
    const FILE: &str = "modules.json";
    let expected = |got: &Value| {
        Error::expected(
            FILE,
            "a list of the modules Transformer, Pooling and Normalize",
            shown(got),
        )
    };
    let Some(json) = folder.json(FILE)? else { return Ok((Pooling::Mean, String::new())) };
    let mut pooling = None;
    let mut transformer = None;
    for module in json.as_array().ok_or_else(|| expected(&json))? {
        let text = |name: &str| module.get(name).and_then(Value::as_str);
        let (Some(kind), Some(path)) = (text("type"), text("path")) else {
            return Err(expected(module));
        };
        match kind.rsplit('.').next() {
            Some("Transformer") if transformer.is_none() => transformer = Some(path.to_owned()),
            Some("Pooling") if pooling.is_none() => {
                if !is_inside(path) {
                    return Err(Error::expected(
                        FILE,
                        "a folder beside it",
                        shown(&module["path"]),
                    ));
                }
                let file = if path.is_empty() { CONFIG } else { &format!("{path}/{CONFIG}") };
                pooling = Some(read_pooling(folder, file)?);
            }
            // All vectors are normalised.
            Some("Normalize") => {}
            _ => return Err(expected(module)),
        }
    }
    match (transformer, pooling) {
        (Some(transformer), pooling) => Ok((pooling.unwrap_or(Pooling::Mean), transformer)),
        (None, _) => Err(expected(&json)),
    }
}

fn read_pooling(folder: &Folder, file: &str) -> Result<Pooling, Error> {
    let Some(settings) = folder.settings(file)? else { return Err(Error::new(file, "not found")) };
    const NAME: &str = "pooling_mode";
    if settings.get(NAME).is_some() {
        return settings.choice(NAME, &[("mean", Pooling::Mean), ("cls", Pooling::First)]);
    }
    let modes = [
        ("pooling_mode_cls_token", Some(Pooling::First)),
        ("pooling_mode_mean_tokens", Some(Pooling::Mean)),
        ("pooling_mode_max_tokens", None),
        ("pooling_mode_mean_sqrt_len_tokens", None),
        ("pooling_mode_weightedmean_tokens", None),
        ("pooling_mode_lasttoken", None),
    ];
    let mut chosen = Vec::new();
    for (name, pooling) in modes {
        if settings.flag(name)? {
            chosen.push((name, pooling));
        }
    }
    match chosen[..] {
        [(_, Some(pooling))] => Ok(pooling),
        _ => {
            let names: Vec<_> = chosen.iter().map(|(name, _)| *name).collect();
            let got = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let expected = "either pooling_mode_mean_tokens or pooling_mode_cls_token";
            Err(Error::expected(file, expected, got))
        }
    }
}

/// The maximum number of tokens, and whether texts are converted to lower case first.
fn length(folder: &Folder, available: usize) -> Result<(usize, bool), Error> {
    let own = folder.settings("sentence_bert_config.json")?;
    let mut max = available;
    match &own {
        Some(settings) if settings.get("max_seq_length").is_some() => {
            max = max.min(settings.whole("max_seq_length", MIN_TOKENS..=1_000_000)?);
        }
        _ => {
            if let Some(settings) = folder.settings("tokenizer_config.json")? {
                // Some files have a number of thirty digits here.
                if let Some(length) = settings.get("model_max_length").and_then(Value::as_f64) {
                    if length < MIN_TOKENS as f64 {
                        let expected = format!("a number from {MIN_TOKENS}");
                        return Err(settings.error("model_max_length", &expected));
                    }
                    max = max.min(length.min(1e9) as usize);
                }
            }
        }
    }
    let lower_case = match &own {
        Some(settings) => settings.flag("do_lower_case")?,
        None => false,
    };
    no_prompt(folder.settings("config_sentence_transformers.json")?)?;
    Ok((max, lower_case))
}

/// Some models expect a prompt before each text. A vector without it would be a wrong one.
fn no_prompt(settings: Option<Settings>) -> Result<(), Error> {
    match settings {
        Some(settings) if settings.get("default_prompt_name").is_some() => {
            Err(settings.error("default_prompt_name", "no prompt"))
        }
        _ => Ok(()),
    }
}

//! The weights of a model, from a safetensors file.

use safetensors::tensor::{Dtype, TensorView};
use safetensors::SafeTensors;

use crate::error::Error;

pub const FILE: &str = "model.safetensors";
/// Bytes. The largest models of the family have 1.4 GB.
pub const MAX_BYTES: u64 = 2 << 30;

pub struct Weights<'a> {
    tensors: SafeTensors<'a>,
    prefix: String,
}

impl<'a> Weights<'a> {
    /// `prefix` is that of all names in some files.
    pub fn new(bytes: &'a [u8], prefix: &str) -> Result<Weights<'a>, Error> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| {
            Error::expected(FILE, "a safetensors file", format!("one with an error: {error}"))
        })?;
        let prefix = format!("{prefix}.");
        let used = tensors.names().iter().any(|name| name.starts_with(&prefix));
        Ok(Weights { tensors, prefix: if used { prefix } else { String::new() } })
    }

    /// The numbers of a tensor of this shape.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let name = format!("{}{name}", self.prefix);
        let of = |expected: String, got: String| {
            Error::new(FILE, format!("expected {expected} as {name}, got {got}"))
        };
        let Ok(tensor) = self.tensors.tensor(&name) else {
            return Err(of(format!("a tensor of the shape {shape:?}"), "nothing".to_owned()));
        };
        if tensor.shape() != shape {
            return Err(of(format!("the shape {shape:?}"), format!("{:?}", tensor.shape())));
        }
        let numbers = numbers(&tensor)
            .ok_or_else(|| of("F32, F16 or BF16".to_owned(), format!("{:?}", tensor.dtype())))?;
        match numbers.iter().find(|number| !number.is_finite()) {
            Some(number) => Err(of("finite numbers".to_owned(), number.to_string())),
            None => Ok(numbers),
        }
    }
}

fn numbers(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let data = tensor.data();
    let halves = || data.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    match tensor.dtype() {
        Dtype::F32 => Some(
            data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        ),
        Dtype::F16 => Some(halves().map(half).collect()),
        Dtype::BF16 => Some(halves().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect()),
        _ => None,
    }
}

/// A 16-bit float (IEEE 754) as a 32-bit one.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10) & 0x1f;
    let fraction = u32::from(bits) & 0x3ff;
    match exponent {
        // Zero, and numbers below the smallest normal one, 2^-14.
        0 => {
            let size = fraction as f32 * 2f32.powi(-24);
            if sign == 0 {
                size
            } else {
                -size
            }
        }
        0x1f => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_are_read() {
        let rows = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x83ff, -6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x7c00, f32::INFINITY),
        ];
        for (bits, number) in rows {
            assert_eq!(half(bits), number, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
        assert!(half(0x8000).is_sign_negative());
    }
}

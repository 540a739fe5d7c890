//! The calculations of a transformer, over rows of numbers.

/// A matrix in a slice: where it starts, and how far apart its rows and columns are.
#[derive(Clone, Copy)]
pub struct View {
    pub start: usize,
    pub rows: usize,
    pub columns: usize,
    pub row_step: usize,
    pub column_step: usize,
}

impl View {
    /// A matrix that is stored row after row.
    pub fn whole(rows: usize, columns: usize) -> View {
        View::part(0, rows, columns, columns)
    }

    /// Columns of a wider matrix.
    pub fn part(start: usize, rows: usize, columns: usize, row_step: usize) -> View {
        View { start, rows, columns, row_step, column_step: 1 }
    }

    pub fn transposed(self) -> View {
        View {
            start: self.start,
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
        }
    }

    fn fits(&self, length: usize) -> bool {
        let last = |count: usize, step: usize| (count - 1).checked_mul(step);
        self.rows > 0
            && self.columns > 0
            && last(self.rows, self.row_step)
                .zip(last(self.columns, self.column_step))
                .and_then(|(row, column)| row.checked_add(column))
                .and_then(|last| last.checked_add(self.start))
                .is_some_and(|last| last < length)
    }
}

/// `out = factor * a * b`, or added to `out` if `add`.
pub fn multiply(
    factor: f32,
    (a, a_view): (&[f32], View),
    (b, b_view): (&[f32], View),
    (out, out_view): (&mut [f32], View),
    add: bool,
) {
    assert!(a_view.fits(a.len()) && b_view.fits(b.len()) && out_view.fits(out.len()));
    assert!(a_view.columns == b_view.rows);
    assert!(a_view.rows == out_view.rows && b_view.columns == out_view.columns);
    // Steps of a slice's views are smaller than its length, so they fit.
    let step = |view: View| (view.row_step as isize, view.column_step as isize);
    let ((ar, ac), (br, bc), (or, oc)) = (step(a_view), step(b_view), step(out_view));
    // SAFETY: all indices of the views are in their slices, which is asserted above, and `out` is
    // borrowed mutably, so it overlaps neither `a` nor `b`. Views of `out` with a step of 0 would
    // write one place twice, which is no data race: the call runs in this thread only.
    unsafe {
        matrixmultiply::sgemm(
            a_view.rows,
            a_view.columns,
            b_view.columns,
            factor,
            a.as_ptr().add(a_view.start),
            ar,
            ac,
            b.as_ptr().add(b_view.start),
            br,
            bc,
            if add { 1.0 } else { 0.0 },
            out.as_mut_ptr().add(out_view.start),
            or,
            oc,
        );
    }
}

/// A linear layer.
pub struct Linear {
    /// One row for each input, which is read faster than one for each output.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// `weight` has one row for each output, as files have it.
    pub fn new(weight: &[f32], bias: Vec<f32>) -> Linear {
        let outputs = bias.len();
        let inputs = weight.len() / outputs;
        let mut turned = Vec::with_capacity(weight.len());
        for input in 0..inputs {
            turned.extend(weight.iter().skip(input).step_by(inputs));
        }
        Linear { weight: turned, bias }
    }

    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// `out = input * weight + bias`; with `add`, it is added to `out`.
    pub fn apply(&self, input: &[f32], out: &mut [f32], add: bool) {
        let outputs = self.bias.len();
        let inputs = self.weight.len() / outputs;
        let rows = input.len() / inputs;
        for row in out.chunks_exact_mut(outputs) {
            if add {
                row.iter_mut().zip(&self.bias).for_each(|(number, bias)| *number += bias);
            } else {
                row.copy_from_slice(&self.bias);
            }
        }
        multiply(
            1.0,
            (input, View::whole(rows, inputs)),
            (&self.weight, View::whole(inputs, outputs)),
            (out, View::whole(rows, outputs)),
            true,
        );
    }
}

pub struct LayerNorm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub epsilon: f32,
}

impl LayerNorm {
    pub fn apply(&self, rows: &mut [f32]) {
        let size = self.weight.len();
        for row in rows.chunks_exact_mut(size) {
            let mean = sum(row, |x| x) / size as f32;
            row.iter_mut().for_each(|x| *x -= mean);
            let scale = 1.0 / (sum(row, |x| x * x) / size as f32 + self.epsilon).sqrt();
            for ((x, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *x = *x * scale * weight + bias;
            }
        }
    }
}

/// The sum in eight parts, which the compiler adds at once.
pub fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut parts = [0.0; 8];
    let chunks = numbers.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().map(|x| of(*x)).sum();
    for chunk in chunks {
        for (part, x) in parts.iter_mut().zip(chunk) {
            *part += of(*x);
        }
    }
    parts.iter().sum::<f32>() + rest
}

/// The exponential of each number divided by their sum.
pub fn softmax(row: &mut [f32]) {
    let largest = row.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    row.iter_mut().for_each(|x| *x = exp(*x - largest));
    let scale = 1.0 / sum(row, |x| x);
    row.iter_mut().for_each(|x| *x *= scale);
}

/// `e^x`, with a relative error below 1e-6. Unlike the library's it has no branches, so the
/// compiler calculates several at once.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Between the smallest and the largest normal result.
    let x = x.clamp(-87.0, 88.0);
    // Adding this number rounds to a whole one.
    const ROUND: f32 = 12_582_912.0;
    let whole = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let rest = x - whole * LN2_HIGH - whole * LN2_LOW;
    let series = 1.0
        + rest
            * (1.0
                + rest
                    * (0.5
                        + rest
                            * (0.166_666_67
                                + rest
                                    * (0.041_666_67
                                        + rest * (0.008_333_334 + rest * 0.001_388_889)))));
    // 2^whole, from its bits.
    let power = f32::from_bits((((whole as i32) + 127) << 23) as u32);
    series * power
}

/// `x * P(X <= x)` of a normal distribution.
pub fn gelu(numbers: &mut [f32]) {
    // The error function by Abramowitz and Stegun 7.1.26, with an error below 2e-7.
    const P: f32 = 0.327_591_1;
    const A: [f32; 5] = [0.254_829_6, -0.284_496_74, 1.421_413_7, -1.453_152, 1.061_405_4];
    for x in numbers {
        let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / (1.0 + P * z);
        let series = t * (A[0] + t * (A[1] + t * (A[2] + t * (A[3] + t * A[4]))));
        let erf = (1.0 - series * exp(-z * z)).copysign(*x);
        *x *= 0.5 * (1.0 + erf);
    }
}

/// Gelu by the hyperbolic tangent, as some models were trained.
pub fn gelu_tanh(numbers: &mut [f32]) {
    const SCALE: f32 = 0.797_884_6;
    for x in numbers {
        let inner = SCALE * (*x + 0.044_715 * *x * *x * *x);
        // x / 2 * (1 + tanh(inner))
        *x /= 1.0 + exp(-2.0 * inner);
    }
}

pub fn relu(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x = x.max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close() {
        for i in -8700..8800 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 1e-6, "exp({x}) = {}, not {exact}", exp(x));
        }
        assert!(exp(-1000.0) < 1e-37);
        assert!(exp(1000.0).is_finite());
    }

    #[test]
    fn activations_are_close() {
        // Rounded results of PyTorch.
        let rows = [
            (-6.0, -5.9e-9, -0.0),
            (-3.0, -0.004_049_694, -0.003_637_392),
            (-1.0, -0.158_655_26, -0.158_808),
            (-0.1, -0.046_017_22, -0.046_017_25),
            (0.0, 0.0, 0.0),
            (0.5, 0.345_731_23, 0.345_714),
            (2.0, 1.954_499_7, 1.954_597_7),
            (50.0, 50.0, 50.0),
        ];
        for (x, exact, tanh) in rows {
            let (mut a, mut b) = ([x], [x]);
            gelu(&mut a);
            gelu_tanh(&mut b);
            assert!((a[0] - exact).abs() < 2e-6, "gelu({x}) = {}", a[0]);
            assert!((b[0] - tanh).abs() < 2e-6, "gelu_tanh({x}) = {}", b[0]);
        }
        let mut numbers = [-1.0, 0.0, 2.0];
        relu(&mut numbers);
        assert_eq!(numbers, [0.0, 0.0, 2.0]);
    }

    #[test]
    fn softmax_adds_up_to_one() {
        for row in [&mut [1.0, 2.0, 3.0][..], &mut [-1e30, 0.0], &mut [88.0; 19], &mut [-200.0]] {
            softmax(row);
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
        }
        let mut row = [0.0, std::f32::consts::LN_2];
        softmax(&mut row);
        assert!((row[0] - 1.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn a_linear_layer_equals_its_definition() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 2), (17, 33, 9)] {
            let at = |i: usize| ((i * 7919 % 101) as f32 - 50.0) / 50.0;
            let weight: Vec<f32> = (0..inputs * outputs).map(at).collect();
            let bias: Vec<f32> = (0..outputs).map(|i| at(i + 3)).collect();
            let layer = Linear::new(&weight, bias.clone());
            let input: Vec<f32> = (0..rows * inputs).map(|i| at(i + 1)).collect();
            let mut out = vec![1.0; rows * outputs];
            layer.apply(&input, &mut out, true);
            for row in 0..rows {
                for o in 0..outputs {
                    let products =
                        (0..inputs).map(|i| input[row * inputs + i] * weight[o * inputs + i]);
                    let expected = 1.0 + bias[o] + products.sum::<f32>();
                    assert!((out[row * outputs + o] - expected).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn a_view_outside_of_its_slice_is_refused() {
        let rows = [(0, 2, 3, 3, 6, true), (0, 2, 3, 3, 5, false), (1, 2, 3, 3, 6, false)];
        for (start, count, columns, step, length, fits) in rows {
            assert_eq!(View::part(start, count, columns, step).fits(length), fits);
        }
        assert!(!View::part(0, usize::MAX, 2, usize::MAX).fits(10));
        assert!(!View::whole(0, 3).fits(10));
    }

    #[test]
    fn a_layer_norm_has_mean_and_variance() {
        let norm =
            LayerNorm { weight: vec![1.0, 2.0, 1.0], bias: vec![0.0, 0.0, 1.0], epsilon: 1e-12 };
        let mut row = [1.0, 2.0, 3.0, -5.0, -5.0, -5.0];
        norm.apply(&mut row);
        let spread = 1.5f32.sqrt();
        for (got, expected) in row.iter().zip([-spread, 0.0, spread + 1.0, 0.0, 0.0, 1.0]) {
            assert!((got - expected).abs() < 1e-5, "{row:?}");
        }
    }
}

defmodule Skillbook.Support.Number do
  @moduledoc false
  # Reads numbers from text. `Integer.parse/1` and its kin are single calls that cannot be
  # interrupted, and take quadratic time on Erlang/OTP 25: a number of a million digits stops a
  # scheduler for ten seconds. So all of the library reads numbers with these functions, which
  # refuse more digits than any number of 64 bits has; a test checks that nothing else does.

  # 2^64 has 20 decimal digits. Octal fields of archives have at most 12.
  @max_digits 20
  # The longest text that `Float` writes has 24 bytes; people may add zeros.
  @max_float 60

  @doc """
  Like `Integer.parse/2`: the number at the start of a text, and the rest.

  Returns `:error` for a number of more than #{@max_digits} digits.

      iex> alias Skillbook.Support.Number
      iex> {Number.integer("12 bytes"), Number.integer("-7"), Number.integer("ff", 16)}
      {{12, " bytes"}, {-7, ""}, {255, ""}}
      iex> Number.integer(String.duplicate("9", 21))
      :error
  """
  @spec integer(String.t(), 2..36) :: {integer(), String.t()} | :error
  def integer(text, base \\ 10) when is_binary(text) do
    if few_digits?(unsigned(text), base, @max_digits),
      do: Integer.parse(text, base),
      else: :error
  end

  @doc """
  Like `String.to_integer/2`, for text whose digits and their number were checked.

      iex> Skillbook.Support.Number.integer!("042")
      42
  """
  @spec integer!(String.t(), 2..36) :: integer()
  def integer!(text, base \\ 10) do
    case integer(text, base) do
      {number, ""} -> number
      _other -> raise ArgumentError, "expected an integer of at most #{@max_digits} digits"
    end
  end

  @doc """
  Like `Float.parse/1`: the number at the start of a text, and the rest.

  Returns `:error` for a number of more than #{@max_float} bytes, and for one that is too large
  for a float.

      iex> alias Skillbook.Support.Number
      iex> {Number.float("34.07s"), Number.float("1e400"), Number.float("x")}
      {{34.07, "s"}, :error, :error}
  """
  @spec float(String.t()) :: {float(), String.t()} | :error
  def float(text) when is_binary(text) do
    if few_float_bytes?(text, @max_float), do: Float.parse(text), else: :error
  rescue
    # The exponent is too large.
    ArgumentError -> :error
  end

  defp unsigned(<<sign, rest::binary>>) when sign in ~c"+-", do: rest
  defp unsigned(text), do: text

  defp few_digits?(<<digit, rest::binary>>, base, left) do
    cond do
      value(digit) >= base -> true
      left == 0 -> false
      true -> few_digits?(rest, base, left - 1)
    end
  end

  defp few_digits?("", _base, _left), do: true

  defp value(digit) when digit in ?0..?9, do: digit - ?0
  defp value(digit) when digit in ?a..?z, do: digit - ?a + 10
  defp value(digit) when digit in ?A..?Z, do: digit - ?A + 10
  defp value(_other), do: 36

  defp few_float_bytes?(<<byte, rest::binary>>, left) when byte in ~c"0123456789+-.eE",
    do: left > 0 and few_float_bytes?(rest, left - 1)

  defp few_float_bytes?(_rest, _left), do: true
end

defmodule Skillbook.TranscriptError do
  @moduledoc """
  A text that is no transcript, or a transcript that cannot go on here.

  ## Fields

    * `:path` - the place in the JSON, such as `"messages[3].role"`; `nil` if it is the whole
    * `:expected` - what should be there
    * `:got` - what is there, as text

  ## Examples

      iex> Exception.message(%Skillbook.TranscriptError{path: "version", expected: "1", got: "2"})
      "the transcript's version: expected 1, got: 2"

      iex> Exception.message(%Skillbook.TranscriptError{expected: "one of the profile \\"bob\\"", got: "one of \\"ann\\""})
      "the transcript: expected one of the profile \\"bob\\", got: one of \\"ann\\""
  """

  @type t :: %__MODULE__{path: String.t() | nil, expected: String.t(), got: String.t()}

  @enforce_keys [:expected, :got]
  defexception [:path, :expected, :got]

  @impl true
  def message(%{path: nil} = error),
    do: "the transcript: expected #{error.expected}, got: #{error.got}"

  def message(error),
    do: "the transcript's #{error.path}: expected #{error.expected}, got: #{error.got}"
end

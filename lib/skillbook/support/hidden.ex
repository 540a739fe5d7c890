defmodule Skillbook.Support.Hidden do
  @moduledoc false
  # Finds hidden characters and makes them visible. The table of them, and the rule about their
  # neighbours, is in native/skillbook_core/src/hidden.rs.
  #
  # Texts are stored as their authors wrote them. Text that goes to a model, a terminal or a log
  # passes here first.

  alias Skillbook.Native

  @type finding :: %{
          at: non_neg_integer(),
          code: non_neg_integer(),
          name: String.t(),
          description: String.t(),
          suspect?: boolean()
        }

  @doc ~S"""
  Replaces each hidden character by its code. Returns the same binary if it has none.

      iex> Skillbook.Support.Hidden.visible("\e[2J \u202Etxt")
      "\\u{1B}[2J \\u{202E}txt"
  """
  @spec visible(String.t()) :: String.t()
  defdelegate visible(text), to: Native, as: :hidden_visible

  @doc "The same on one line."
  @spec line(String.t()) :: String.t()
  def line(text) do
    text = visible(text)
    # Few have several lines, and a list of patterns is compiled each time.
    if String.contains?(text, "\n"),
      do: String.replace(text, ["\r\n", "\n"], "\\n"),
      else: text
  end

  @doc ~S"""
  Escapes the hidden characters of a JSON text, which keeps its meaning.

      iex> Skillbook.Support.Hidden.json(~s("a\u202E"))
      ~S("a\u202e")
  """
  @spec json(String.t()) :: String.t()
  defdelegate json(text), to: Native, as: :hidden_json

  @doc "Returns whether the text has a hidden character."
  @spec any?(String.t()) :: boolean()
  def any?(text), do: visible(text) != text

  @doc "The hidden characters with their offsets in bytes. `suspect?` means rarely by accident."
  @spec find(String.t()) :: [finding()]
  def find(text) do
    for {at, code, name, description, suspect?} <- Native.hidden_find(text) do
      %{at: at, code: code, name: name, description: description, suspect?: suspect?}
    end
  end
end

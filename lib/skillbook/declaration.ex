defmodule Skillbook.Declaration do
  @moduledoc """
  What a command takes, as the Flags and Usage sections of its page say. `Skillbook.View.flags/2` gives it.

  Only what is plainly written counts; `docs/skills.md` says what that is. The same declaration is
  behind the flags that handlers get (`Skillbook.Flags.cast_declared/3`), tool definitions, grammars
  and lint.

  ## Fields

    * `:flags` - a list of `Skillbook.Flag`, in the page's order
    * `:choices` - flags that exclude each other, as `(--body <text> | --file <path>)` in Usage: a list of maps with their
      `:names` and whether one of them is `:required`
    * `:words` - whether words of its own may stand without a flag: Usage shows some, or is no plain
      synopsis
  """

  alias Skillbook.{Flag, Native}

  @type t :: %__MODULE__{
          flags: [Flag.t()],
          choices: [%{names: [String.t()], required: boolean()}],
          words: boolean()
        }

  defstruct flags: [], choices: [], words: false

  @doc """
  What the text of a page declares, or `nil`, without its frontmatter.

      iex> declaration = Skillbook.Declaration.read("## Flags\\n\\n--to  Who gets it (default: me)\\n")
      iex> for flag <- declaration.flags, do: {flag.name, flag.required, flag.default}
      [{"to", false, ["me"]}]
      iex> Skillbook.Declaration.read("## Flags\\n\\nNone.\\n")
      nil
  """
  @spec read(String.t()) :: t() | nil
  def read(text) when is_binary(text), do: Native.declaration_read(text)
end

defmodule Skillbook.Prompt do
  @moduledoc """
  The part of a system prompt that says how commands are written and what there is.

  ## Sections

    * `:rules` - how commands are written
    * `:domains` - the domains with their descriptions
    * `:skills` - the skills that belong to no domain, with their descriptions
    * `:quick_reference` - the first usage lines of commands, twenty at most, and how many more there are
    * `:notes` - the notes, whole
    * `:other` - the titles of what can be read with `get_skill` but is not in the prompt

  Sections that would be empty are left out, and a view that shows nothing has no prompt at all.
  """

  alias Skillbook.{Native, Options, View}

  @sections [:rules, :domains, :skills, :quick_reference, :notes, :other]

  @doc """
  The prompt of a view.

  ## Options

    * `:sections` - the sections to include; all of them if it is left out. They always stand in the order of the list above

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> text = Skillbook.Prompt.text(view, sections: [:domains])
      iex> text |> String.split("\\n") |> Enum.slice(4, 2)
      ["  email  Send, find and draft mail", "  tasks  tasks.create, tasks.search"]
  """
  @spec text(View.t(), keyword()) :: String.t()
  def text(view, options \\ [])

  # Made once for each profile and generation; a binary that is ready needs no dirty scheduler.
  def text(%View{ref: ref}, []), do: Native.view_prompt_made(ref) || Native.view_prompt(ref)

  def text(%View{ref: ref} = view, options) do
    with {:error, error} <- Options.validate(options, "the prompt", schema()), do: raise(error)

    case Enum.uniq(options[:sections]) do
      sections when length(sections) == length(@sections) -> text(view)
      sections -> Native.view_prompt_of(ref, Enum.map(sections, &Atom.to_string/1))
    end
  end

  defp schema do
    known? = &(is_list(&1) and Enum.all?(&1, fn section -> section in @sections end))
    [sections: {"a list of #{Enum.map_join(@sections, ", ", &inspect/1)}", known?}]
  end
end

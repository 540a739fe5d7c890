defmodule Skillbook.Prompt do
  @moduledoc """
  The part of a system prompt that says how commands are written and what there is.

  A prompt depends on the view's generation and profile alone: it is the same to the byte each time.

  ## Formats

    * `:default` - `:rules`, `:domains`, `:skills`, `:quick_reference`, `:inline_skills`, `:notes`, `:preloaded_skills`,
      `:other`
    * `:xml` - `:available_skills`, `:inline_skills`, `:preloaded_skills`: for models that read files themselves
    * `:notes` - `:inline_skills`, `:notes_list`, `:skill_catalog`, `:preloaded_skills`, `:other_notes`
    * `:list` - `:skill_list`, `:inline_skills`, `:preloaded_skills`

  Only the default says how commands are written. A book with commands wants `:rules` and `:domains` beside the sections
  of another format.

  ## Sections

  They always stand in this order, whatever the order in which they are asked for.

    * `:rules` - how commands are written
    * `:domains` - the domains with their descriptions
    * `:commands` - all commands with their descriptions, those with `include_in_prompt: false` too: for a profile that has few
    * `:skills` - the skills that belong to no domain, with their descriptions
    * `:skill_list` - the same with their tags: `- name: description [tag, tag]`
    * `:available_skills` - the same as XML, with the full path of each file
    * `:quick_reference` - the first usage lines of commands, twenty at most, and how many more there are
    * `:inline_skills` - the skills and commands that their source selects with `:inline`, whole, each in a `<skill>` tag.
      They are in none of the lists of skills
    * `:notes` - the notes, whole, each under its title
    * `:notes_list` - the notes, whole, as a list: `- Title: content`
    * `:skill_catalog` - the skills with their names in bold: `- **name**: description`
    * `:preloaded_skills` - the entries that the option `:preloaded` names, whole, each under its name
    * `:other` - names and titles of what can be read with `get_skill` but is not in the prompt
    * `:other_notes` - the same on one line, the titles in quotes, without domains

  Sections that would be empty are left out, and a view that tells a model of nothing has no prompt at all. Entries with
  `disable-model-invocation` are in no section.

  In the two XML sections skills stand in the order of their sources, then of their names. If two sources have a skill of
  one name, both are there. Names, descriptions and paths are escaped; in the text of an inline skill the `<` of what
  would be a tag `skill` or `available_skills` is written `&lt;`, and all else is left as it is.
  """

  alias Skillbook.Support.Options
  alias Skillbook.{Native, OptionError, View}

  @formats [:default, :xml, :notes, :list]

  @sections [
    :rules,
    :domains,
    :commands,
    :skills,
    :skill_list,
    :available_skills,
    :quick_reference,
    :inline_skills,
    :notes,
    :notes_list,
    :skill_catalog,
    :preloaded_skills,
    :other,
    :other_notes
  ]

  @doc """
  The prompt of a view.

  ## Options

    * `:format` - one of the formats above; `:default` if it is left out
    * `:sections` - a list of sections, instead of a format
    * `:preloaded` - the names of entries that stand whole in the prompt, in this order, for what a turn is about. Names that
      the view does not tell of are passed over
    * `:max_chars` - the most characters that the prompt may have
    * `:max_tokens` - the most tokens that it may have, by an estimate that rather counts too many: a token for four ASCII
      characters, and one for each other character

  A prompt with a limit keeps its order. It holds what comes before the first piece that has no room; its last line says
  how many domains, commands, skills and notes are left out and how to find them. If even the rules have no room, that
  line stands alone; if it has none either, the prompt is empty.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> text = Skillbook.Prompt.text(view, sections: [:domains])
      iex> text |> String.split("\\n") |> Enum.slice(4, 2)
      ["  email  Send, find and draft mail", "  tasks  tasks.create, tasks.search"]

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> text = Skillbook.Prompt.text(Skillbook.View.all(catalog), max_tokens: 400)
      iex> text |> String.split("\\n") |> Enum.at(-2)
      "Left out for lack of space: 3 commands and 1 skill. `get_skill` lists everything, `get_skill: NAME` shows one entry."
  """
  @spec text(View.t(), keyword()) :: String.t()
  def text(view, options \\ [])

  def text(%View{ref: ref}, []), do: Native.view_prompt(ref)

  def text(%View{} = view, format: :default), do: text(view)

  def text(%View{ref: ref}, options), do: Native.view_prompt_with(ref, to_native(options))

  @doc false
  @spec to_native(keyword()) :: map()
  def to_native(options) do
    with :ok <- Options.validate(options, "the prompt", schema()),
         :ok <- one_of_two(options) do
      sections = options[:sections]

      %{
        format: to_string(options[:format] || :default),
        sections: sections && Enum.map(sections, &Atom.to_string/1),
        preloaded: options[:preloaded] || [],
        max_chars: options[:max_chars],
        max_tokens: options[:max_tokens]
      }
    else
      {:error, error} -> raise error
    end
  end

  @doc false
  @spec changes(View.t(), View.t()) :: String.t()
  def changes(%View{} = old, %View{} = new) do
    cond do
      old.profile != new.profile -> mixed("profile", old.profile, new.profile)
      old.book != new.book -> mixed("book", old.book, new.book)
      old.book || Native.view_same_catalog(old.ref, new.ref) -> Native.view_news(new.ref, old.ref)
      true -> raise ArgumentError, "expected two views of one catalog, got views of two catalogs"
    end
  end

  defp mixed(what, old, new) do
    raise ArgumentError,
          "expected two views of one #{what}, got views of #{inspect(old)} and #{inspect(new)}"
  end

  @doc false
  @spec formats() :: [atom()]
  def formats, do: @formats

  @doc false
  @spec sections() :: [atom()]
  def sections, do: @sections

  defp one_of_two(options) do
    if options[:format] && options[:sections] do
      problem = {:invalid, "a format or sections, not both", options[:format]}
      {:error, %OptionError{subject: "the prompt", option: :format, problem: problem}}
    else
      :ok
    end
  end

  defp schema do
    known? = &(is_list(&1) and Enum.all?(&1, fn section -> section in @sections end))
    limit = {"a number or nil", &(is_nil(&1) or (is_integer(&1) and &1 >= 0))}

    [
      format: {"one of #{list(@formats)}", &(&1 in @formats)},
      sections: {"a list of #{list(@sections)}", known?},
      preloaded: {"a list of texts", &Options.texts?/1},
      max_chars: limit,
      max_tokens: limit
    ]
  end

  defp list(names), do: Enum.map_join(names, ", ", &inspect/1)
end

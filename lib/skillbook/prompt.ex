defmodule Skillbook.Prompt do
  @moduledoc """
  Writes the part of a system prompt that explains commands and lists the skills of a view.

  A prompt depends only on the generation and the profile of the view, so repeated calls return
  the same bytes.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Prompt.text(view, sections: [:commands]) =~ "tasks.search"
      true

  ## Formats

  A format is a list of sections:

    * `:default` - `:rules`, `:domains`, `:skills`, `:quick_reference`, `:inline_skills`,
      `:notes`, `:preloaded_skills`, `:other`
    * `:xml` - `:available_skills`, `:inline_skills`, `:preloaded_skills`: for models that read
      files with a tool of their own
    * `:notes` - `:inline_skills`, `:notes_list`, `:skill_catalog`, `:preloaded_skills`,
      `:other_notes`
    * `:list` - `:skill_list`, `:inline_skills`, `:preloaded_skills`

  Only the default format explains commands. With another format, add `:rules` and `:domains` if
  the book has commands.

  ## Sections

  Sections always have this order:

    * `:rules` - the rules for writing commands. For a profile with `writes: :delegate`, one more
      line says how to have an agent change something
    * `:domains` - the domains with their descriptions
    * `:commands` - all commands with their descriptions, even those with `include_in_prompt:
      false`; for profiles with few commands
    * `:skills` - the skills without a domain, with their descriptions
    * `:skill_list` - the same with tags: `- name: description [tag, tag]`
    * `:available_skills` - the same as XML, with the full paths of the files
    * `:quick_reference` - the first usage lines of up to twenty commands, and the number of the
      others
    * `:inline_skills` - the full text of skills and commands that their source selects with
      `:inline`, each in a `<skill>` tag. They are not in the lists of skills
    * `:notes` - the full text of the notes, each under its title
    * `:notes_list` - the full text of the notes, as a list: `- Title: content`
    * `:skill_catalog` - the skills with bold names: `- **name**: description`
    * `:preloaded_skills` - the full text of the entries in the option `:preloaded`, each under
      its name
    * `:other` - names and titles of entries that are not in the prompt but can be read with
      `get_skill`
    * `:other_notes` - the same on one line, with titles in quotes, without domains

  Empty sections are left out, and the prompt of an empty view is empty. Entries with
  `disable-model-invocation` are in no section.

  The two XML sections are sorted by source, then by name, and contain both skills if two sources
  have a skill of the same name. Names, descriptions and paths are escaped. In the text of an
  inline skill the `<` of the tags `skill` and `available_skills` is written as `&lt;`; the rest
  is unchanged.
  """

  alias Skillbook.Run.Policy
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
  Returns the prompt of a view.

  ## Options

    * `:format` (atom) - one of the formats above. Defaults to `:default`
    * `:sections` (list of atoms) - sections, instead of a format
    * `:preloaded` (list of texts) - names of entries whose full text is in the prompt, in this
      order, for the topic of a turn. Names that the model may not see are ignored. Defaults to
      `[]`
    * `:max_chars` (characters) - the maximum length. Defaults to no limit
    * `:max_tokens` (tokens) - the maximum number of tokens, by a high estimate: one token for
      four ASCII characters, and one for each other character. Defaults to no limit

  With a limit the preloaded entries are taken first, then the other parts in their order up to
  the first that does not fit. The last line has the number of omitted preloaded skills, domains,
  commands, skills and notes and the command to find them. If the rules do not fit, the prompt is
  only this line; if the line does not fit either, the prompt is empty.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "guest", skills: ["tasks.*"])
      iex> Skillbook.Prompt.text(view, max_tokens: 400) =~ "Left out for lack of space: "
      true
  """
  @spec text(View.t(), keyword()) :: String.t()
  def text(view, options \\ [])

  def text(%View{ref: ref, profile: %{writes: :delegate}} = view, options),
    do: with_rule(ref, native(options), Policy.rule(view))

  def text(%View{ref: ref}, []), do: Native.view_prompt(ref)

  def text(%View{} = view, format: :default), do: text(view)

  def text(%View{ref: ref}, options), do: Native.view_prompt_with(ref, native(options))

  @doc false
  @spec to_native(View.t(), keyword()) :: map()
  def to_native(%View{} = view, options), do: options |> native() |> reserve(Policy.rule(view))

  # The rules are always the first section.
  defp with_rule(ref, options, rule) do
    rules = Native.view_prompt_with(ref, native(sections: [:rules]))
    text = Native.view_prompt_with(ref, reserve(options, rule))

    cond do
      rules != "" and String.starts_with?(text, rules) ->
        String.replace_prefix(text, rules, rules <> rule)

      # The line about omitted parts needs no space for the rule.
      text == "" ->
        Native.view_prompt_with(ref, options)

      true ->
        text
    end
  end

  # Leaves space for a line of ASCII.
  defp reserve(%{sections: sections, format: format} = options, rule) do
    if (sections == nil and format == "default") or "rules" in (sections || []) do
      %{
        options
        | max_chars: less(options.max_chars, byte_size(rule)),
          max_tokens: less(options.max_tokens, div(byte_size(rule) + 3, 4))
      }
    else
      options
    end
  end

  defp less(nil, _size), do: nil
  defp less(limit, size), do: max(limit - size, 0)

  defp native(options) do
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

  defp mixed(kind, old, new) do
    raise ArgumentError,
          "expected two views of one #{kind}, got views of #{inspect(old)} and #{inspect(new)}"
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

defmodule Skillbook.Prompt do
  @moduledoc """
  Writes the part of a system prompt that explains commands and lists the skills of a view.

  A prompt depends only on the view and the options, and on the commands that the profile ran most
  on earlier days. So repeated calls return the same bytes.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Prompt.text(view, sections: [:commands]) =~ "tasks.search"
      true

  ## Formats

  A format is a list of sections:

    * `:default` - `:rules`, `:domains`, `:skills`, `:quick_reference`, `:inline_skills`,
      `:notes`, `:preloaded_skills`, `:other`
    * `:tools` - `:tool_rules`, `:domains`, `:skills`, `:inline_skills`, `:notes`,
      `:preloaded_skills`, `:other`: for models that call commands as tools
    * `:xml` - `:available_skills`, `:inline_skills`, `:preloaded_skills`: for models that read
      files with a tool of their own
    * `:notes` - `:inline_skills`, `:notes_list`, `:skill_catalog`, `:preloaded_skills`,
      `:other_notes`
    * `:list` - `:skill_list`, `:inline_skills`, `:preloaded_skills`

  Only the formats `:default` and `:tools` explain commands. With another format, add `:rules` or
  `:tool_rules`, and `:domains`, if the book has commands.

  ## Sections

  Sections always have this order:

    * `:rules` - the rules for writing commands. For a profile with `writes: :delegate`, one more
      line says how to have an agent change something
    * `:tool_rules` - the rules for calling commands as tools (`Skillbook.Tools`), instead of
      `:rules`
    * `:domains` - the domains with their descriptions
    * `:commands` - all commands with their descriptions, even those with `include_in_prompt:
      false`; for profiles with few commands
    * `:skills` - the skills without a domain, with their descriptions
    * `:skill_list` - the same with tags: `- name: description [tag, tag]`
    * `:available_skills` - the same as XML, with the full paths of the files
    * `:quick_reference` - the first usage lines of up to twenty commands, and the number of the
      others. [The order](docs/prompt.md#the-quick-reference) is that of their use
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

  alias Skillbook.Prompt.Sections
  alias Skillbook.Run.Policy
  alias Skillbook.Search.Candidates
  alias Skillbook.Support.{Options, TokenCount}
  alias Skillbook.Usage.MostRun
  alias Skillbook.{Native, OptionError, View}

  @formats [:default, :tools, :xml, :notes, :list]

  @sections [
    :rules,
    :tool_rules,
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

  # As in `prompt/section.rs`.
  @of_format %{
    default: ~w(rules domains skills quick_reference inline_skills notes preloaded_skills other)a,
    tools: ~w(tool_rules domains skills inline_skills notes preloaded_skills other)a,
    xml: ~w(available_skills inline_skills preloaded_skills)a,
    notes: ~w(inline_skills notes_list skill_catalog preloaded_skills other_notes)a,
    list: ~w(skill_list inline_skills preloaded_skills)a
  }

  # How many entries near to the messages are looked for.
  @max_nearest 100

  @doc """
  Returns the prompt of a view.

  ## Options

    * `:format` (atom) - one of the formats above. Defaults to `:default`
    * `:sections` (list) - sections, instead of a format; and sections of the application, in the
      forms of `Skillbook.Prompt.Sections`, which come last, also after a format. They change more
      often than the rest, so make them last in a prompt that a server should find in its cache,
      or send them in a message instead. `:messages` has the message for `:memory`
    * `:protocol` (`:blocks` or `:tools`) - how the model calls commands. With `:tools` the
      default format is `:tools`. In `:sections`, `:rules` then means `:tool_rules`, and
      `:commands` and `:quick_reference` are left out, since the tools describe the commands.
      Defaults to `:blocks`
    * `:preloaded` (list of texts) - names of entries whose full text is in the prompt, in this
      order, for the topic of a turn. Names that the model may not see are ignored. Defaults to
      `[]`
    * `:max_chars` (characters) - the maximum length. Defaults to no limit
    * `:max_tokens` (tokens) - the maximum number of tokens, by a high estimate: one token for
      four ASCII characters, and one for each other character. Defaults to no limit
    * `:messages` (list of `t:Skillbook.Model.message/0`) - the conversation. If the prompt
      exceeds a maximum, the entries nearest to the last four messages of the user stay in it: the
      first hundred that a search for these texts finds. Only the first 2,000 characters of a
      message count. Defaults to `[]`
    * `:nearest` (list of texts) - the names of the entries that stay, nearest first, instead of
      `:messages`. Names that the model may not see are ignored. Defaults to `[]`

  ## Prompts that are too long

  With a maximum, a prompt consists of the first parts of this order that fit together:

    1. the preloaded entries
    2. the lines of entries with the profile in `proactive_for_profile_ids`, unless their source
       has low trust, and of their domains
    3. the lines of the nearest entries and of their domains, nearest first
    4. the whole texts of inline entries and notes that are proactive, then of the nearest ones
    5. everything else, in the order of the sections

  The parts that stay keep the order of the sections, so the same parts are the same bytes. A
  higher maximum keeps all parts of a lower one. The last line has the number of omitted preloaded
  skills, domains, commands, skills and notes and the commands to find them: `get_skill`, and
  `skills.search` if the view lists it. If the rules do not fit, the prompt is only this line; if
  the line does not fit either, the prompt is empty.

  A prompt within its maximum does not depend on the messages. A prompt that is cut changes with
  them, and a changed prompt is not in the cache of a model's server. So make it once for each
  conversation, as `Skillbook.Agent` does with the first input.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "guest", skills: ["tasks.*"])
      iex> Skillbook.Prompt.text(view, max_tokens: 400) =~ "Left out for lack of space: "
      true

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> messages = [%{role: :user, content: "Remember a fact about me: tea!"}]
      iex> options = [sections: [:domains], max_chars: 500, messages: messages]
      iex> Skillbook.Prompt.text(view, options) =~ ~r/^  memory /m
      true
  """
  @spec text(Skillbook.view_or_book(), Skillbook.options()) :: String.t()
  def text(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Prompt.text/2")
    {own, options} = pop_own_sections(options)
    text = make(view, options)

    case own_sections(view, own, options) do
      "" -> text
      own when text == "" -> own
      own -> text <> "\n\n" <> own
    end
  end

  # The application's sections have no part in the limits and the order of the others.
  defp pop_own_sections(options) do
    case options[:sections] do
      [_ | _] = sections ->
        {own, others} = Enum.split_with(sections, &Sections.section?/1)

        if others == [],
          do: {own, Keyword.delete(options, :sections)},
          else: {own, Keyword.put(options, :sections, others)}

      _ ->
        {[], options}
    end
  end

  defp own_sections(_view, [], _options), do: ""

  defp own_sections(view, sections, options) do
    inputs = Candidates.inputs(options[:messages] || [])
    Sections.text(view, sections: sections, message: List.last(inputs) || "")
  end

  defp make(%View{ref: ref, profile: %{writes: :delegate}} = view, options) do
    native = options |> native() |> put_used(view)
    rule = Policy.rule(view, protocol(native))
    with_rule(ref, native, native |> reserve(rule) |> put_nearest(view, options), rule)
  end

  defp make(%View{ref: ref} = view, options)
       when options in [[], [format: :default], [protocol: :blocks]] do
    case MostRun.names(view) do
      [] -> Native.view_prompt(ref)
      used -> Native.view_prompt_with(ref, %{native([]) | used: used})
    end
  end

  defp make(%View{ref: ref} = view, options) do
    native = options |> native() |> put_used(view) |> put_nearest(view, options)
    Native.view_prompt_with(ref, native)
  end

  @doc false
  @spec to_native(View.t(), keyword()) :: map()
  def to_native(%View{} = view, options) do
    native = options |> native() |> put_used(view)
    native |> reserve(Policy.rule(view, protocol(native))) |> put_nearest(view, options)
  end

  # The rules are always the first section.
  defp with_rule(ref, options, reserved, rule) do
    rules = Native.view_prompt_with(ref, native(sections: [rules(options)]))
    text = Native.view_prompt_with(ref, reserved)

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
    if (sections == nil and format in ["default", "tools"]) or
         Enum.any?(["rules", "tool_rules"], &(&1 in (sections || []))) do
      %{
        options
        | max_chars: less(options.max_chars, byte_size(rule)),
          max_tokens: less(options.max_tokens, div(byte_size(rule) + 3, 4))
      }
    else
      options
    end
  end

  defp rules(native), do: if(protocol(native) == :tools, do: :tool_rules, else: :rules)

  defp protocol(%{format: "tools"}), do: :tools

  defp protocol(%{sections: sections}),
    do: if("tool_rules" in (sections || []), do: :tools, else: :blocks)

  defp less(nil, _size), do: nil
  defp less(limit, size), do: max(limit - size, 0)

  defp native(options) do
    with :ok <- Options.validate(options, "the prompt", schema()),
         :ok <- one_of_two(options, :format, :sections, "a format or sections, not both"),
         :ok <- one_of_two(options, :nearest, :messages, "names or :messages, not both") do
      {format, sections} = of_protocol(options[:protocol], options[:format], options[:sections])

      %{
        format: to_string(format || :default),
        sections: sections && Enum.map(sections, &Atom.to_string/1),
        preloaded: options[:preloaded] || [],
        nearest: options[:nearest] || [],
        used: [],
        max_chars: options[:max_chars],
        max_tokens: options[:max_tokens]
      }
    else
      {:error, error} -> raise error
    end
  end

  defp of_protocol(:tools, format, nil) when format in [nil, :default], do: {:tools, nil}

  defp of_protocol(:tools, format, [_ | _] = sections) do
    sections = sections -- [:commands, :quick_reference]
    {format, Enum.map(sections, &if(&1 == :rules, do: :tool_rules, else: &1))}
  end

  defp of_protocol(_protocol, format, sections), do: {format, sections}

  # Only the quick reference has them.
  defp put_used(%{sections: sections, format: format} = native, view) do
    if "quick_reference" in (sections || []) or (sections == nil and format == "default"),
      do: %{native | used: MostRun.names(view)},
      else: native
  end

  # The search may ask an embedding model, so it runs only for a prompt that has to be cut.
  defp put_nearest(%{max_chars: nil, max_tokens: nil} = native, _view, _options), do: native

  defp put_nearest(native, view, options) do
    with [_ | _] = messages <- options[:messages],
         true <- cut?(view.ref, native) do
      %{native | nearest: Candidates.of_messages(view, messages, @max_nearest)}
    else
      _ -> native
    end
  end

  defp cut?(ref, native) do
    whole = %{native | max_chars: nil, max_tokens: nil}
    Native.view_prompt_with(ref, whole) != Native.view_prompt_with(ref, native)
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

  @typedoc "A section of a prompt, its text without a limit, and the lines that a limit omits."
  @type part :: %{section: atom(), text: String.t(), tokens: non_neg_integer(), cut: [String.t()]}

  @doc false
  # Returns the prompt of a format, its sections that are not empty, and the lines of each section
  # that a limit omits, for people.
  @spec parts(View.t(), keyword()) :: %{text: String.t(), parts: [part()]}
  def parts(%View{} = view, options) do
    format = if options[:protocol] == :tools, do: :tools, else: options[:format] || :default
    text = text(view, options)
    whole = Keyword.drop(options, [:format, :protocol, :max_chars, :max_tokens])

    sections =
      for section <- @of_format[format],
          part = text(view, [sections: [section]] ++ whole),
          part != "",
          do: {section, part}

    # The lines that stay are in the order of the sections, so they are matched from the first on.
    {parts, _left} =
      Enum.map_reduce(sections, lines(text), fn {section, part}, left ->
        {cut, left} = cut(lines(part), left, [])
        {%{section: section, text: part, tokens: tokens(part), cut: cut}, left}
      end)

    %{text: text, parts: parts}
  end

  defp cut([], left, cut), do: {Enum.reverse(cut), left}
  defp cut([line | lines], [line | left], cut), do: cut(lines, left, cut)
  defp cut([line | lines], left, cut), do: cut(lines, left, [line | cut])

  defp lines(text), do: text |> String.split("\n") |> Enum.reject(&(&1 == ""))

  @doc false
  # Estimates the tokens of a text, as `:max_tokens` does.
  @spec tokens(String.t()) :: non_neg_integer()
  defdelegate tokens(text), to: TokenCount, as: :estimate

  defp one_of_two(options, one, other, expected) do
    if options[one] && options[other] do
      problem = {:invalid, expected, options[one]}
      {:error, %OptionError{subject: "the prompt", option: one, problem: problem}}
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
      protocol: {":blocks or :tools", &(&1 in [:blocks, :tools])},
      preloaded: {"a list of texts", &Options.texts?/1},
      nearest: {"a list of texts", &Options.texts?/1},
      messages: {"a list of messages with :role and :content", &Candidates.messages?/1},
      max_chars: limit,
      max_tokens: limit
    ]
  end

  defp list(names), do: Enum.map_join(names, ", ", &inspect/1)
end

defmodule Skillbook.Skill.Page do
  @moduledoc false
  # Makes the page of a `Skillbook.Skill` from options, and checks it by loading it as a book
  # would. The core alone reads pages, so options and files never differ.

  alias Skillbook.Skill.Types
  alias Skillbook.Support.Options
  alias Skillbook.{Catalog, Diagnostic, Frontmatter, OptionError, Part, Skill, SkillError, View}

  # Options whose fields have another name.
  @fields %{
    labels: "visibility_labels",
    user_invocable: "user-invocable",
    disable_model_invocation: "disable-model-invocation"
  }

  # The most that a page may have, as files.
  @max_bytes 1_048_576

  @doc "Returns the text of a page. Its handler is a module, or a name that a catalog gives."
  @spec render(Skill.t(), String.t()) :: String.t()
  def render(%Skill{} = skill, handler),
    do: Frontmatter.write(skill.fields ++ [{"handler", handler}], skill.body)

  @spec of_function(keyword()) :: {:ok, Skill.t()} | {:error, Exception.t()}
  def of_function(options) do
    extra = [
      run: {"a function of flags and context", &is_function(&1, 2)},
      body: {"text", &(is_binary(&1) and String.valid?(&1))}
    ]

    options = Options.keywords(options)

    with {:ok, fields} <- fields(options, "a skill", extra, [:run]) do
      body = options[:body] || options[:description] <> "\n"

      check(%Skill{
        name: options[:name],
        fields: fields,
        body: body,
        path: "function #{options[:name]}",
        handler: options[:run]
      })
    end
  end

  @doc "Returns the skill of a module that is being compiled, or raises `CompileError`."
  @spec of_module!(Macro.Env.t(), pos_integer(), keyword(), {pos_integer(), term()} | nil) ::
          Skill.t()
  def of_module!(env, line, options, doc) do
    case of_module(env, line, options, doc) do
      {:ok, skill} ->
        unless Module.defines?(env.module, {:execute, 2}, :def),
          do: fail(env, line, "#{skill.name} needs a function execute/2 (Skillbook.Handler)")

        skill

      {:error, %OptionError{option: :name, problem: :missing} = error} ->
        fail(env, line, "#{Exception.message(error)}, such as name: #{inspect(name(env.module))}")

      {:error, %SkillError{diagnostics: [%Diagnostic{} = first | _]} = error} ->
        fail(env, first.line || line, Exception.message(error))

      {:error, error} ->
        fail(env, line, Exception.message(error))
    end
  end

  defp of_module(env, line, options, doc) do
    with {:ok, fields} <- fields(options, "use Skillbook.Skill", [], []) do
      {body, body_line} = body(doc, options)

      check(%Skill{
        name: options[:name],
        fields: fields,
        body: body,
        path: "#{Path.relative_to_cwd(env.file)} (#{inspect(env.module)})",
        lines: {line, body_line},
        handler: env.module
      })
    end
  end

  @spec fail(Macro.Env.t(), pos_integer(), String.t()) :: no_return()
  defp fail(env, line, reason),
    do: raise(CompileError, file: env.file, line: line, description: reason)

  # A name that the author may want: the last two parts of the module's.
  defp name(module) do
    module |> Module.split() |> Enum.take(-2) |> Enum.map_join(".", &Macro.underscore/1)
  end

  defp body({line, doc}, _options) when is_binary(doc) do
    # The text of a heredoc begins on the line below.
    {doc, if(String.contains?(doc, "\n"), do: line + 1, else: line)}
  end

  defp body(_no_doc, options), do: {options[:description] <> "\n", nil}

  # The fields of the frontmatter, in the order of the schema.
  defp fields(options, subject, extra, required) do
    with :ok <- Options.validate(options, subject, schema() ++ extra),
         :ok <- required(options, subject, [:name, :description] ++ required),
         :ok <- once(options, subject) do
      fields =
        for {option, _} <- schema(),
            {:ok, value} <- [Keyword.fetch(options, option)],
            value != nil do
          {Map.get(@fields, option, Atom.to_string(option)), value(option, value)}
        end

      {:ok, fields}
    end
  end

  defp required(options, subject, required) do
    case Enum.find(required, &is_nil(options[&1])) do
      nil -> :ok
      option -> {:error, %OptionError{subject: subject, option: option, problem: :missing}}
    end
  end

  defp once(options, subject) do
    keys = Keyword.keys(options)

    case keys -- Enum.uniq(keys) do
      [] ->
        :ok

      [option | _] ->
        problem = {:invalid, "one value", Keyword.get_values(options, option)}
        {:error, %OptionError{subject: subject, option: option, problem: problem}}
    end
  end

  # Values of Elixir as those of YAML.
  # A command without flags.
  defp value(:flags, []), do: %{}
  defp value(:flags, flags), do: for({name, spec} <- flags, do: {to_string(name), flag(spec)})
  defp value(:timeout, milliseconds) when is_integer(milliseconds), do: "#{milliseconds}ms"
  defp value(_option, value), do: value(value)

  # A flag whose values have a structure is one with a JSON Schema.
  defp flag(type) when is_tuple(type), do: [{"schema", value(Types.schema(type))}]

  defp flag([{_key, _value} | _] = spec) do
    case List.keytake(spec, :type, 0) do
      {{:type, type}, rest} when is_tuple(type) or type == :any ->
        value(rest) ++ [{"schema", value(Types.schema(type))}]

      _other ->
        value(spec)
    end
  end

  defp flag(spec), do: value(spec)

  defp value(value) when is_boolean(value) or is_nil(value), do: value
  defp value(value) when is_atom(value), do: Atom.to_string(value)
  defp value(%Regex{} = regex), do: Regex.source(regex)
  defp value(%module{} = date) when module in [Date, DateTime], do: to_string(date)
  defp value(map) when map == %{}, do: map
  defp value(%{} = map) when not is_struct(map), do: Enum.map(map, &pair/1)
  defp value([{:not, text}]) when is_binary(text), do: [value({:not, text})]
  defp value([{key, _} | _] = pairs) when is_atom(key), do: Enum.map(pairs, &pair/1)
  defp value(list) when is_list(list), do: Enum.map(list, &value/1)
  defp value({:not, text}), do: %{"not" => text}
  defp value(value), do: value

  defp pair({key, value}), do: {to_string(key), value(value)}
  defp pair(value), do: value(value)

  # Loads the page alone. Its own module may not exist yet, so a function stands for it.
  defp check(%Skill{} = skill) do
    page = render(skill, "function #{skill.name}")

    if byte_size(page) > @max_bytes do
      failed(skill, "expected a page of at most #{@max_bytes} bytes, got #{byte_size(page)}")
    else
      {:ok, catalog} = Catalog.load([%{skill | handler: fn _flags, _context -> :ok end}])
      found = Enum.filter(Catalog.diagnostics(catalog), &(&1.severity in [:error, :warning]))

      case {found, View.entries(View.all(catalog), [])} do
        {[], [%{kind: :command} = entry]} ->
          with :ok <- Part.check(Part.installed(), :check_page, [entry]), do: {:ok, skill}

        {[], _no_command} ->
          expected = ~s(expected the name of a command, such as "math.add", got )
          failed(skill, expected <> inspect(skill.name))

        {found, _entries} ->
          {:error, %SkillError{name: skill.name, diagnostics: found}}
      end
    end
  rescue
    # A value that YAML does not have.
    error in ArgumentError -> failed(skill, Exception.message(error))
  end

  defp failed(skill, message) do
    diagnostic = %Diagnostic{code: :field_ignored, severity: :error, message: message}
    {:error, %SkillError{name: skill.name, diagnostics: [diagnostic]}}
  end

  defp schema do
    text = {"text", &Options.text?/1}
    texts = {"a list of texts", &Options.texts?/1}
    boolean = {"a boolean", &is_boolean/1}

    [
      name: text,
      title: text,
      description: text,
      flags: {"a keyword list of flags", &Keyword.keyword?/1},
      input_schema: {"a JSON Schema as a map", &(is_map(&1) and not is_struct(&1))},
      effects: {":read or :write", &(&1 in [:read, :write])},
      examples: {"a list of texts and {:not, text}", &examples?/1},
      tags: texts,
      labels: texts,
      aliases: texts,
      requires: texts,
      trigger_keywords: texts,
      timeout: {"milliseconds", &Options.milliseconds?/1},
      max_running: {"a number above 0", &Options.positive?/1},
      idempotent: boolean,
      approval: {":required or a list of flags such as [\"--to\"]", &approval?/1},
      schedule: text,
      timezone: text,
      run_as: text,
      job: {"a keyword list", &keyword?/1},
      include_in_prompt: boolean,
      user_invocable: boolean,
      disable_model_invocation: boolean,
      replaces: boolean,
      proactive_for_profile_ids: texts,
      exclude_from_prompt_profile_ids: texts,
      tool: text,
      output: {"a map", &(is_map(&1) and not is_struct(&1))},
      metadata: {"a keyword list or a map", &(keyword?(&1) or (is_map(&1) and not is_struct(&1)))}
    ]
  end

  # An empty list is neither in YAML.
  defp keyword?(value), do: Keyword.keyword?(value) and value != []

  # The core checks the flags.
  defp approval?(value), do: value == :required or (value != [] and Options.texts?(value))

  defp examples?(value) do
    is_list(value) and
      Enum.all?(value, fn
        {:not, text} -> Options.text?(text)
        text -> Options.text?(text)
      end)
  end
end

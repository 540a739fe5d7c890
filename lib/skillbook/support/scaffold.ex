defmodule Skillbook.Support.Scaffold do
  @moduledoc false
  # The files that Mix tasks and `skillbook new` make, each as `{path, text}`. Pages are below a
  # folder of skills, modules below the folder of the project.

  alias Skillbook.Support.JSON

  @typep file :: {Path.t(), String.t()}

  @typedoc """
  A flag as the fields of a form. `values` are those of a `one_of`, with commas; `min` and `max`
  are those of a number; `example` is a value for the page's example. A form may have more.
  """
  @type flag :: %{
          required(:name) => String.t(),
          required(:type) => String.t(),
          optional(:required | :repeatable) => boolean(),
          optional(:default | :values | :min | :max | :description | :example) =>
            String.t() | nil,
          optional(atom()) => term()
        }

  @topic [%{name: "topic", type: "text", required: true, description: "What it is about"}]
  @name [
    %{
      name: "name",
      type: "text",
      default: "everybody",
      description: "Who is meant",
      example: "Ann"
    }
  ]

  @command ~r/\A[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\z/
  @skill ~r/\A[a-z0-9]+(-[a-z0-9]+)*\z/

  # The project

  @doc "The application of the project and the module that its modules begin with."
  @spec project!() :: {atom(), String.t()}
  def project! do
    if Mix.Project.umbrella?(),
      do: Mix.raise("expected an application, got an umbrella; run it in a folder of apps/")

    app = Mix.Project.config()[:app] || Mix.raise("expected a project with :app in its mix.exs")
    {app, module(app)}
  end

  @doc """
  The module that the modules of an application begin with: the one before `MixProject` in its
  `mix.exs`, or one named as the application is.
  """
  @spec module(atom()) :: String.t()
  def module(app) do
    with true <- Mix.Project.config()[:app] == app,
         project = inspect(Mix.Project.get()),
         [_, module] <- Regex.run(~r/\A(.+)\.(?:MixProject|Mixfile)\z/, project) do
      module
    else
      _other -> app |> Atom.to_string() |> Macro.camelize()
    end
  end

  @doc "Parses a command line, or raises with the usage of the task."
  @spec parse!(String.t(), [String.t()], keyword(), non_neg_integer()) ::
          {keyword(), [String.t()]}
  def parse!(task, argv, switches, count) do
    case OptionParser.parse(argv, strict: switches) do
      {options, arguments, []} when length(arguments) == count ->
        {options, arguments}

      {_options, arguments, []} ->
        Mix.raise(
          "#{task} expects #{arguments(count)}, got: #{Enum.join(arguments, " ")}" <>
            "\nSee: mix help #{task}"
        )

      {_options, _arguments, [{option, _value} | _]} ->
        Mix.raise("#{task} has no option #{option}\nSee: mix help #{task}")
    end
  end

  defp arguments(0), do: "no arguments"
  defp arguments(2), do: ~s(a name and a description in quotes)

  # Files

  @doc "Writes the files that are missing."
  @spec add([file()]) :: :ok
  def add(files) do
    for {path, text} <- files do
      if File.exists?(path),
        do: say(:cyan, "unchanged", path),
        else: Mix.Generator.create_file(path, formatted(path, text))
    end

    :ok
  end

  @doc "Writes new files, or raises if one of them is there."
  @spec create!([file()]) :: :ok
  def create!(files) do
    for {path, _text} <- files,
        File.exists?(path),
        do: Mix.raise("#{path} exists already; choose another name, or remove it")

    add(files)
  end

  defp formatted(path, text) do
    if Path.extname(path) in [".ex", ".exs"],
      do: [Code.format_string!(text), "\n"],
      else: text
  end

  defp say(color, word, path), do: Mix.shell().info([color, "* #{word} ", :reset, path])

  @folder "priv/skills"

  @doc """
  Checks the name of a new file of a kind.

      iex> Skillbook.Support.Scaffold.check(:workflow, "reports.morning")
      :ok
      iex> {:error, text} = Skillbook.Support.Scaffold.check(:skill, "Rules")
      iex> text
      "expected a name of lowercase letters, digits and hyphens, such as tea-rules, got: Rules"
  """
  @spec check(:skill | :command | :workflow | :handler, String.t()) :: :ok | {:error, String.t()}
  def check(kind, name) do
    {pattern, expected} = expected(kind)

    if name =~ pattern,
      do: :ok,
      else: {:error, "expected a name #{expected}, got: #{name}"}
  end

  defp expected(:skill),
    do: {@skill, "of lowercase letters, digits and hyphens, such as tea-rules"}

  defp expected(:handler), do: {@command, "of a domain, a dot and a verb, such as orders.find"}
  defp expected(_page), do: {@command, "of a domain, a dot and a verb, such as reports.morning"}

  @doc "A page of instructions."
  @spec skill(String.t(), String.t(), Path.t()) :: file()
  def skill(name, description, folder \\ @folder) do
    check!(:skill, name)

    {Path.join(folder, "#{name}/SKILL.md"),
     """
     ---
     name: #{name}
     description: #{yaml(description)}
     examples:
       - #{yaml(description)}
     ---

     # #{name |> String.replace("-", " ") |> String.capitalize()}

     Write here what the model should know or do, in plain sentences:

     - one rule each, the most important first
     - commands that it may use, with an example
     """}
  end

  @doc "A command whose page a model follows."
  @spec command(String.t(), String.t(), Path.t(), [flag()]) :: file()
  def command(name, description, folder, flags \\ @topic) do
    about = if flags != [], do: " about " <> Enum.map_join(flags, " and ", &"{#{&1.name}}")

    body = """
    Write here what the model should do#{about}, in plain sentences:

    - one rule each, the most important first
    """

    page(:command, name, description, folder, "effects: read\n", flags, body)
  end

  @doc "A command that runs others. `step` is one of them, with the placeholder `{name}`."
  @spec workflow(String.t(), String.t(), Path.t(), String.t(), [flag()]) :: file()
  def workflow(
        name,
        description,
        folder \\ @folder,
        step \\ "greetings.hello --name {name}",
        flags \\ @name
      ) do
    body = "## Behavior\n\n```cmd\n#{step}\n```\n"
    page(:workflow, name, description, folder, "", flags, body)
  end

  defp page(kind, name, description, folder, fields, flags, body) do
    check!(kind, name)

    {Path.join(folder, file(name) <> ".md"),
     """
     ---
     name: #{name}
     description: #{yaml(description)}
     #{fields}#{declared(flags)}
     examples:
       - #{yaml(description)}
     ---

     #{body}
     ## Examples

     #{Enum.join([name | Enum.map(flags, &example/1)], " ")}
     """}
  end

  # Flags

  @types ~w(text one_of integer number boolean date datetime email url)
  @names ~r/\A[a-z][a-z0-9]*([-_][a-z0-9]+)*\z/
  @numbers ~r/\A-?\d{1,15}(\.\d{1,15})?\z/

  @doc "The types of a flag."
  @spec types() :: [String.t()]
  def types, do: @types

  @doc """
  Checks a flag's name, unless it has it already, and its values. The error has the field.

      iex> flag = %{name: "due-before", type: "date"}
      iex> Skillbook.Support.Scaffold.check_flag(flag)
      :ok
      iex> Skillbook.Support.Scaffold.check_flag(%{flag | type: "one_of"})
      {:error, {:values, "expected the values of --due-before, such as: open, closed"}}
      iex> Skillbook.Support.Scaffold.check_flag(%{flag | name: "dueBefore"}, "dueBefore")
      :ok
  """
  @spec check_flag(flag(), String.t() | nil) :: :ok | {:error, {atom(), String.t()}}
  def check_flag(%{name: name} = flag, old_name \\ nil) do
    cond do
      name != old_name and not (name =~ @names) ->
        {:error,
         {:name,
          "expected a flag of lowercase letters, digits and hyphens, such as due-before, " <>
            "got: #{name}"}}

      flag.type == "one_of" and values(flag) == [] ->
        {:error, {:values, "expected the values of --#{name}, such as: open, closed"}}

      flag[:required] && given(flag, :default) ->
        {:error, {:default, "expected no default for --#{name}, which every call needs"}}

      true ->
        Enum.find_value([:default, :min, :max], :ok, &check_value(flag, &1, given(flag, &1)))
    end
  end

  defp check_value(_flag, _key, nil), do: nil

  defp check_value(%{type: type} = flag, key, text) when type in ["integer", "number"] do
    unless text =~ @numbers and (type == "number" or not (text =~ ".")) do
      expected = if type == "integer", do: "a whole number", else: "a number"
      {:error, {key, "expected #{expected} as the #{key} of --#{flag.name}, got: #{text}"}}
    end
  end

  defp check_value(%{type: "boolean"} = flag, :default, text) when text not in ["true", "false"],
    do:
      {:error,
       {:default, "expected true or false as the default of --#{flag.name}, got: #{text}"}}

  defp check_value(_flag, _key, _text), do: nil

  defp declared([]), do: "flags: {}"

  defp declared(flags),
    do: Enum.join(["flags:" | Enum.map(flags, &("  " <> flag_line(&1)))], "\n")

  @doc """
  The line of a flag below `flags:`. Fields that its type does not have are left out.

      iex> Skillbook.Support.Scaffold.flag_line(%{name: "limit", type: "integer", min: "1"})
      "limit: {type: integer, min: 1}"
  """
  @spec flag_line(flag()) :: String.t()
  def flag_line(%{type: type} = flag) do
    number? = type in ["integer", "number"]

    keys = [
      type: type,
      values: if(type == "one_of", do: "[#{Enum.map_join(values(flag), ", ", &yaml/1)}]"),
      min: if(number?, do: typed(type, given(flag, :min))),
      max: if(number?, do: typed(type, given(flag, :max))),
      required: if(flag[:required], do: "true"),
      repeatable: if(flag[:repeatable], do: "true"),
      default: typed(type, given(flag, :default)),
      description: typed("text", given(flag, :description))
    ]

    given = for {key, value} <- keys, value, do: "#{key}: #{value}"
    "#{flag.name}: {#{Enum.join(given, ", ")}}"
  end

  defp given(flag, key), do: if(flag[key] not in [nil, ""], do: flag[key])

  # A number or a switch stands as itself; a wrong one is a text, and loading says so.
  defp typed(_type, nil), do: nil
  defp typed("boolean", text) when text in ["true", "false"], do: text

  defp typed(type, text) when type in ["integer", "number"],
    do: if(text =~ @numbers, do: text, else: JSON.encode(text))

  defp typed(_type, text), do: yaml(text)

  defp values(flag), do: Enum.uniq(String.split(flag[:values] || "", ~r/\s*,\s*/, trim: true))

  # A value that the flag takes.
  defp example(%{type: "boolean", name: name}), do: "--#{name}"

  defp example(flag) do
    value = flag[:example] || given(flag, :default) || sample(flag)
    "--#{flag.name} " <> if(value =~ ~r/\A[\w.:+@\/-]+\z/u, do: value, else: JSON.encode(value))
  end

  defp sample(%{type: "one_of"} = flag), do: hd(values(flag))
  defp sample(%{type: "integer"}), do: "1"
  defp sample(%{type: "number"}), do: "1.5"
  defp sample(%{type: "date"}), do: "2026-01-31"
  defp sample(%{type: "datetime"}), do: "2026-01-31T09:00:00Z"
  defp sample(%{type: "email"}), do: "ann@example.com"
  defp sample(%{type: "url"}), do: "https://example.com"
  defp sample(_text), do: "tea"

  @doc "A command in a module."
  @spec handler(String.t(), String.t(), String.t()) :: file()
  def handler(module, name, description) do
    check!(:handler, name)

    {"lib/#{Macro.underscore(module)}/skills/#{file(name)}.ex",
     """
     defmodule #{module(module, name)} do
       @moduledoc \"""
       #{String.trim(description)}.
       \"""

       use Skillbook.Skill,
         name: #{inspect(name)},
         description: #{inspect(description)},
         effects: :read,
         flags: [
           name: [type: :text, required: true, description: "A name"]
         ]

       @impl true
       def execute(%{"name" => name}, _context), do: {:ok, "Hello, \#{name}!"}
     end
     """}
  end

  @doc "The test of a command in a module."
  @spec handler_test(String.t(), String.t()) :: file()
  def handler_test(module, name) do
    {"test/#{Macro.underscore(module)}/skills/#{file(name)}_test.exs",
     """
     defmodule #{module(module, name)}Test do
       use ExUnit.Case, async: true

       test "runs" do
         start_supervised!(
           {Skillbook, name: __MODULE__, sources: [{:modules, [#{module(module, name)}]}]}
         )

         report = Skillbook.run(__MODULE__, "```cmd\\n#{name} --name Ann\\n```")
         assert [%{status: :ok, content: "Hello, Ann!"}] = report.results
       end
     end
     """}
  end

  @doc "The test of all skills of an application."
  @spec test(atom(), String.t()) :: file()
  def test(app, module) do
    {"test/#{Macro.underscore(module)}/skills_test.exs",
     """
     defmodule #{module}.SkillsTest do
       use ExUnit.Case, async: true

       setup do
         start_supervised!({Skillbook, name: __MODULE__, sources: #{sources(app)}})
         {:ok, view: Skillbook.view(__MODULE__)}
       end

       test "the skills have no mistakes" do
         assert Skillbook.diagnostics(__MODULE__) == []
       end

       test "a command runs", %{view: view} do
         report = Skillbook.run(view, "```cmd\\ngreetings.hello --name Ann\\n```")
         assert [%{status: :ok, content: "Hello, Ann!"}] = report.results
       end
     end
     """}
  end

  defp sources(app), do: "[{:priv, :#{app}, \"skills\"}, {:modules, :#{app}}]"

  defp file(name), do: String.replace(name, ".", "/")
  defp module(module, name), do: "#{module}.Skills.#{Macro.camelize(file(name))}"

  # JSON is YAML too. Words in a row mean themselves, also in `{}`.
  defp yaml(text) do
    if text =~ ~r/\A\p{L}+( [\p{L}\d.]+)+\z/u, do: text, else: JSON.encode(text)
  end

  defp check!(kind, name), do: with({:error, text} <- check(kind, name), do: Mix.raise(text))

  # The supervision tree

  @doc """
  The name of the book: that of the child of the application, else the name given, else the module
  and `Skills`. Raises if the name given is no module.
  """
  @spec book!(String.t() | nil, String.t()) :: String.t()
  def book!(name, module) do
    unless name == nil or name =~ ~r/\A[A-Z]\w*(\.[A-Z]\w*)*\z/,
      do: Mix.raise("expected a module as --name, such as #{module}.Assistant, got: #{name}")

    with path when path != nil <- application_file(),
         [_, book] <- Regex.run(~r/\{Skillbook,\s*name: (:\w+|[A-Z][\w.]*)/, File.read!(path)) do
      book
    else
      _none -> name || "#{module}.Skills"
    end
  end

  @doc "Adds the book to the children of the application, or prints how."
  @spec add_child(atom(), String.t()) :: term()
  def add_child(app, book) do
    path = application_file()

    with {:ok, text} <- if(path, do: File.read(path), else: {:error, child_notice(app, book)}),
         {:ok, new} <- with_child(text, app, book) do
      File.write!(path, new)
      say(:green, "editing", path)
    else
      :there -> say(:cyan, "unchanged", path)
      {:error, notice} -> Mix.shell().info(["\n", notice])
    end
  end

  @doc "The text of the application's module with the book, `:there`, or how to add it."
  @spec with_child(String.t(), atom(), String.t()) ::
          {:ok, String.t()} | :there | {:error, String.t()}
  def with_child(text, app, book) do
    if text =~ "{Skillbook,",
      do: :there,
      else: with(:error <- put(text, child(app, book)), do: {:error, child_notice(app, book)})
  end

  @doc "How to add the book by hand."
  @spec child_notice(atom(), String.t()) :: String.t()
  def child_notice(app, book) do
    """
    Add the book to the children of the application's supervisor:

        #{child(app, book)}\
    """
  end

  defp child(app, book), do: "{Skillbook, name: #{book}, sources: #{sources(app)}}"

  @doc "The file of the application's module, or `nil`."
  @spec application_file() :: Path.t() | nil
  def application_file do
    with {module, _arguments} <- Mix.Project.get!().application()[:mod],
         path = "lib/#{Macro.underscore(module)}.ex",
         true <- File.exists?(path) do
      path
    else
      _none -> nil
    end
  end

  @doc """
  Puts a child into the list `children = [...]` of a source: before an endpoint, else last.

      iex> text = "children = [\\n  MyApp.Repo\\n]\\n"
      iex> Skillbook.Support.Scaffold.put(text, "{Skillbook, []}")
      {:ok, "children = [\\n  MyApp.Repo,\\n  {Skillbook, []}\\n]\\n"}
      iex> Skillbook.Support.Scaffold.put("children = []", "{Skillbook, []}")
      {:ok, "children = [{Skillbook, []}]"}
      iex> Skillbook.Support.Scaffold.put("start(children())", "{Skillbook, []}")
      :error
  """
  @spec put(String.t(), String.t()) :: {:ok, String.t()} | :error
  def put(text, child) do
    options = [
      columns: true,
      token_metadata: true,
      literal_encoder: &{:ok, {:__block__, &2, [&1]}}
    ]

    with {:ok, code} <- Code.string_to_quoted(text, options),
         {_code, {meta, children}} <- Macro.prewalk(code, nil, &find_list/2) do
      case Enum.find(children, &endpoint?/1) do
        {_, at, _} -> {:ok, insert(text, at, &before(&1, &2, child))}
        nil -> {:ok, insert(text, meta[:closing], &last(&1, &2, child, children))}
      end
    else
      _ -> :error
    end
  end

  defp find_list({:=, _, [{:children, _, _}, {:__block__, meta, [list]}]} = code, nil)
       when is_list(list),
       do: {code, {meta, list}}

  defp find_list(code, found), do: {code, found}

  defp endpoint?({:__aliases__, _, names}), do: List.last(names) == :Endpoint
  defp endpoint?({:__block__, _, [{module, _options}]}), do: endpoint?(module)
  defp endpoint?(_child), do: false

  # Puts a text together again from the parts before and after a place.
  defp insert(text, at, join) do
    {before, [line | rest]} = text |> String.split("\n") |> Enum.split(at[:line] - 1)
    {left, right} = String.split_at(line, at[:column] - 1)
    join.(Enum.join(before ++ [left], "\n"), Enum.join([right | rest], "\n"))
  end

  # Before the endpoint and the comments above it.
  defp before(before, rest, child) do
    {lines, [line]} = before |> String.split("\n") |> Enum.split(-1)

    if String.trim(line) == "" do
      {comments, code} = comments(lines)
      lines = Enum.reverse(code) ++ [line <> lines(child, line) <> ","]
      Enum.join(lines ++ Enum.reverse(comments) ++ [line], "\n") <> rest
    else
      before <> child <> ", " <> rest
    end
  end

  # The comments and blank lines at the end of some lines, and the lines before, both reversed.
  defp comments(lines),
    do: lines |> Enum.reverse() |> Enum.split_while(&(&1 =~ ~r/\A\s*(#.*)?\z/))

  # As the formatter breaks it, with its comma.
  defp lines(child, indent) do
    [line_length: 97 - String.length(indent)]
    |> then(&Code.format_string!(child, &1))
    |> IO.iodata_to_binary()
    |> String.replace("\n", "\n" <> indent)
  end

  # The bracket that ends the list is on a line of its own, or behind the last child.
  defp last(before, rest, child, children) do
    if String.trim(List.last(String.split(before, "\n"))) == "" do
      {ends, code} = before |> String.split("\n") |> Enum.drop(-1) |> comments()
      code = if children == [], do: code, else: with_comma(code)
      indent = indent(before)
      child = indent <> "  " <> lines(child, indent <> "  ")
      lines = Enum.reverse(code) ++ Enum.reverse(ends) ++ [child, indent]
      Enum.join(lines, "\n") <> rest
    else
      before <> if(children == [], do: "", else: ", ") <> child <> rest
    end
  end

  defp with_comma([line | lines]),
    do: [if(String.ends_with?(line, ","), do: line, else: line <> ",") | lines]

  # The blanks that the last line of a text begins with.
  defp indent(text), do: ~r/([ \t]*)[^\n]*\z/ |> Regex.run(text) |> Enum.at(1)
end

defmodule Skillbook.CLI.Arguments do
  @moduledoc false
  # Parses the arguments into the options of one subcommand. Starts nothing, and reads nothing
  # except whether folders exist.

  alias Skillbook.Support.UntilError
  alias Skillbook.{CLI, Part}

  @commands [
    {"run", CLI.Run},
    {"shell", CLI.Shell},
    {"chat", CLI.Chat},
    {"prompt", CLI.Prompt},
    {"tools", CLI.Tools},
    {"grammar", CLI.Grammar},
    {"get", CLI.Get},
    {"list", CLI.List},
    {"search", CLI.Search},
    {"usage", CLI.Usage},
    {"schedule", CLI.Schedule},
    {"breaker", CLI.Breaker},
    {"approvals", CLI.Approvals},
    {"runs", CLI.Runs},
    {"servers", CLI.Servers},
    {"serve", CLI.Serve},
    {"token", CLI.Token},
    {"mcp", CLI.MCP},
    {"connect", CLI.Connect},
    {"disconnect", CLI.Disconnect},
    {"connections", CLI.Connections},
    {"init", CLI.Init},
    {"new", CLI.New},
    {"lint", CLI.Lint},
    {"test", CLI.Test},
    {"route", CLI.Route},
    {"explain", CLI.Explain},
    {"install", CLI.Install},
    {"update", CLI.Update},
    {"outdated", CLI.Outdated},
    {"restore", CLI.Restore},
    {"remove", CLI.Remove},
    {"export", CLI.Export},
    {"publish", CLI.Publish},
    {"import", CLI.Import},
    {"completions", CLI.Completions}
  ]

  # The folders of skills of a line without --dir. Those of other programs come first, so that
  # `skills` replaces their entries.
  @folders [".claude/skills", ".agents/skills", "skills"]

  @globals [
    dir: :keep,
    mcp: :keep,
    vault: :keep,
    db: :string,
    profile: :string,
    grant: :keep,
    color: {:one_of, [:auto, :always, :never]},
    builtins: :boolean,
    pack: :keep,
    help: :boolean,
    version: :boolean
  ]

  @aliases [h: :help, V: :version]

  defstruct [
    :command,
    args: [],
    dirs: [],
    # Whether --dir names them.
    named: false,
    servers: [],
    vaults: [],
    db: nil,
    embedder: nil,
    connections: nil,
    profile: "default",
    grants: [],
    profile_given: false,
    color: :auto,
    builtins: true,
    # Folders that `test` is about: a built-in source that they are part of is not read twice.
    tested: [],
    flags: []
  ]

  @type t :: %__MODULE__{
          command: module(),
          args: [String.t()],
          dirs: [Path.t()],
          named: boolean(),
          servers: [Skillbook.Source.item()],
          vaults: [Path.t()],
          db: String.t() | nil,
          embedder: Skillbook.Embedder.t() | nil,
          connections: keyword() | nil,
          profile: String.t(),
          grants: [String.t()],
          profile_given: boolean(),
          color: :auto | :always | :never,
          builtins: boolean() | [String.t()],
          tested: [Path.t()],
          flags: keyword()
        }

  @doc false
  def commands, do: @commands

  @doc false
  def globals, do: @globals

  @doc "The switches for the input of operations."
  @spec inputs([atom()]) :: keyword()
  def inputs(names),
    do: for(name <- names, {field, {type, _doc}} <- Part.operation(name).input, do: {field, type})

  @doc """
  Reads the action of a command that lists without one, and whose others need a reference.
  """
  @spec action([String.t()], [String.t()]) :: {:ok, [String.t()]} | {:error, String.t()}
  def action([], _others), do: {:ok, ["list"]}
  def action(["list"], _others), do: {:ok, ["list"]}

  def action([action | more], others) do
    case {action in ["list" | others], more} do
      {true, []} -> {:error, "`#{action}` needs a REF"}
      {true, [_ref]} when action != "list" -> {:ok, [action | more]}
      {true, more} -> {:error, "`#{action}` takes no more arguments, got: #{List.last(more)}"}
      {false, _more} -> {:error, unknown_action(action, ["list" | others])}
    end
  end

  defp unknown_action(action, actions) do
    {others, [last]} = Enum.split(actions, -1)

    "expected #{Enum.join(others, ", ")} or #{last}, got: #{action}" <>
      suggestion(action, actions, 0.7)
  end

  @doc "Parses the arguments. An error has a message and the arguments that print its help."
  @spec parse([String.t()]) ::
          {:ok, t()}
          | {:help, module() | nil}
          | {:version, String.t()}
          | {:error, String.t(), String.t()}
  def parse(argv) do
    {before, rest, invalid} =
      OptionParser.parse_head(argv, strict: types(@globals), aliases: @aliases)

    cond do
      invalid != [] -> {:error, invalid(hd(invalid), @globals), "--help"}
      before[:version] -> {:version, to_string(Application.spec(:skillbook, :vsn))}
      before[:help] -> help(rest)
      true -> command(rest, before)
    end
  end

  defp command([], _before), do: {:help, nil}
  defp command(["help" | topics], _before), do: help(topics)

  defp command([name | rest], before) do
    with {:ok, module} <- find(name) do
      switches = @globals ++ switches(module)

      {given, args, invalid} =
        OptionParser.parse(rest, strict: types(switches), aliases: [{:c, :command} | @aliases])

      cond do
        given[:help] ->
          {:help, module}

        invalid != [] ->
          {:error, invalid(hd(invalid), switches), "#{name} --help"}

        true ->
          with {:error, message} <- build(module, before ++ given, args),
               do: {:error, message, "#{name} --help"}
      end
    end
  end

  defp help([]), do: {:help, nil}
  defp help([name | _]) when name in ["help", "--help", "-h"], do: {:help, nil}

  defp help([name | _]) do
    with {:ok, module} <- find(name), do: {:help, module}
  end

  defp find(name) do
    case List.keyfind(@commands, name, 0) do
      {_, module} ->
        {:ok, module}

      nil ->
        names = Enum.map(@commands, &elem(&1, 0)) ++ ["help"]

        {:error,
         "unknown command `#{name}`#{meant(name) || suggestion(name, names)}\n" <>
           "The commands are #{Enum.join(names, ", ")}.", "--help"}
    end
  end

  defp meant(name), do: with(text when text != nil <- CLI.Help.meant(name), do: "; " <> text)

  defp build(module, given, args) do
    switches = switches(module)

    with {:ok, given} <- values(given, @globals ++ switches),
         {:ok, dirs} <- dirs(Keyword.get_values(given, :dir)),
         {:ok, servers} <- servers(given),
         {:ok, vaults} <- folders("--vault", Keyword.get_values(given, :vault)),
         :ok <- unique_names(vaults),
         {:ok, args} <- module.args(args) do
      {:ok,
       %__MODULE__{
         command: module,
         args: args,
         dirs: dirs,
         named: Keyword.has_key?(given, :dir),
         servers: servers,
         vaults: vaults,
         db: given[:db],
         profile: given[:profile] || "default",
         grants: Keyword.get_values(given, :grant),
         profile_given: given[:profile] != nil or given[:grant] != nil,
         color: given[:color] || :auto,
         builtins: builtins(Keyword.get(given, :builtins, true), given),
         flags: given |> Keyword.take(Keyword.keys(switches)) |> json(switches)
       }}
    end
  end

  defp servers(given),
    do: CLI.Servers.sources(Keyword.get_values(given, :mcp), given[:profile] || "default")

  @doc "The switches of a subcommand. `--json` and `--format json` mean the same in all."
  @spec switches(module()) :: keyword()
  def switches(module) do
    switches = module.switches()

    cond do
      not Keyword.has_key?(switches, :format) and switches[:json] == :boolean ->
        switches ++ [format: {:one_of, [:text, :json]}]

      json?(switches[:format]) ->
        switches ++ [json: :boolean]

      true ->
        switches
    end
  end

  defp json?({:one_of, formats}), do: :json in formats
  defp json?(_type), do: false

  defp json(flags, switches) do
    if json?(switches[:format]) and (flags[:json] == true or flags[:format] == :json),
      do: Keyword.merge(flags, json: true, format: :json),
      else: flags
  end

  defp builtins(builtins, given) do
    case Keyword.get_values(given, :pack) do
      [] -> builtins
      packs -> if builtins, do: ["*" | packs], else: packs
    end
  end

  defp dirs([]), do: {:ok, Enum.filter(@folders, &File.dir?/1)}

  defp dirs(dirs), do: folders("--dir", dirs)

  defp folders(option, folders) do
    case Enum.reject(folders, &File.dir?/1) do
      [] ->
        {:ok, folders}

      [folder | _] ->
        {:error, "#{option} expects a folder, got: #{folder}, which #{problem(folder)}"}
    end
  end

  # A vault is named after its folder.
  defp unique_names(vaults) do
    vaults
    |> Enum.group_by(&Path.basename(Path.expand(&1)))
    |> Enum.find_value(:ok, fn
      {_name, [_]} ->
        nil

      {name, [first, second | _]} ->
        {:error,
         "--vault expects folders with different names, got: #{first} and #{second}, " <>
           "both named #{name}"}
    end)
  end

  defp problem(path),
    do: if(File.exists?(path), do: "is a file", else: "does not exist")

  # The types of `OptionParser` for the additional types of `Skillbook.CLI.Subcommand`.
  defp types(switches), do: for({name, type} <- switches, do: {name, type(type)})

  defp type({kind, _values_or_max}) when kind in [:one_of, :text], do: :string
  defp type({:some_of, _values}), do: :keep
  defp type({:number, _min, _max}), do: :integer
  defp type(type), do: type

  defp values(given, switches) do
    UntilError.map(given, fn {name, text} ->
      case value(switches[name], text) do
        {:ok, value} -> {:ok, {name, value}}
        :error -> {:error, "--#{dashed(name)} expects #{expected(switches[name])}, got: #{text}"}
      end
    end)
  end

  defp value({kind, names}, text) when kind in [:one_of, :some_of] do
    with nil <- Enum.find(names, &(to_string(&1) == text)),
         do: :error,
         else: (name -> {:ok, name})
  end

  defp value({:number, min, max}, number) do
    if number >= min and (max == nil or number <= max), do: {:ok, number}, else: :error
  end

  defp value(_type, value), do: {:ok, value}

  defp expected({kind, values}) when kind in [:one_of, :some_of],
    do: "one of #{Enum.join(values, ", ")}"

  defp expected({:number, min, nil}), do: "a whole number from #{min}"
  defp expected({:number, min, max}), do: "a whole number from #{min} to #{max}"

  defp invalid({option, value}, switches) do
    name = option |> String.trim_leading("-") |> String.replace_prefix("no-", "")

    case Enum.find(switches, fn {key, _} -> dashed(key) == name end) do
      nil ->
        "unknown option `#{option}`" <>
          suggestion(option, Enum.map(switches, &("--" <> dashed(elem(&1, 0)))))

      {_, :boolean} ->
        "#{option} takes no value, got: #{value}"

      _ when value == nil ->
        "#{option} expects a value"

      {_, type} ->
        "#{option} expects #{expected(type)}, got: #{value}"
    end
  end

  defp dashed(key), do: key |> to_string() |> String.replace("_", "-")

  defp suggestion(given, known, least \\ 0.8) do
    case Skillbook.Support.Closest.to(given, known, least) do
      nil -> ""
      close -> "; did you mean `#{close}`?"
    end
  end
end

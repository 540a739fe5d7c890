defmodule Skillbook.CLI.Options do
  @moduledoc false
  # Arguments in, options out; nothing is read or started here, except that the default folder is looked for.

  alias Skillbook.CLI

  @commands [
    {"run", CLI.Run},
    {"shell", CLI.Shell},
    {"chat", CLI.Chat},
    {"prompt", CLI.Prompt},
    {"get", CLI.Get},
    {"list", CLI.List},
    {"search", CLI.Search},
    {"lint", CLI.Lint},
    {"explain", CLI.Explain}
  ]

  @globals [
    dir: :keep,
    db: :string,
    profile: :string,
    grant: :keep,
    color: :string,
    builtins: :boolean,
    help: :boolean,
    version: :boolean
  ]

  @colors [:auto, :always, :never]

  defstruct [
    :command,
    args: [],
    dirs: [],
    db: nil,
    profile: "default",
    grants: [],
    color: :auto,
    builtins: true,
    flags: []
  ]

  @type t :: %__MODULE__{
          command: module(),
          args: [String.t()],
          dirs: [Path.t()],
          db: String.t() | nil,
          profile: String.t(),
          grants: [String.t()],
          color: :auto | :always | :never,
          builtins: boolean(),
          flags: keyword()
        }

  @doc false
  def commands, do: @commands

  @doc false
  def globals, do: @globals

  @spec parse([String.t()]) ::
          {:ok, t()} | {:help, module() | nil} | {:version, String.t()} | {:error, String.t()}
  def parse(argv) do
    {before, rest, invalid} = OptionParser.parse_head(argv, strict: @globals, aliases: [h: :help])

    cond do
      invalid != [] -> {:error, invalid(hd(invalid), @globals)}
      before[:version] -> {:version, to_string(Application.spec(:skillbook, :vsn))}
      before[:help] -> help(rest)
      true -> command(rest, before)
    end
  end

  defp command([], _before), do: {:help, nil}
  defp command(["help" | topics], _before), do: help(topics)

  defp command([name | rest], before) do
    with {:ok, module} <- find(name) do
      switches = @globals ++ module.switches()
      {given, args, invalid} = OptionParser.parse(rest, strict: switches, aliases: [h: :help])

      cond do
        invalid != [] -> {:error, invalid(hd(invalid), switches)}
        given[:help] -> {:help, module}
        true -> build(module, before ++ given, args)
      end
    end
  end

  defp help([]), do: {:help, nil}

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
         "unknown command `#{name}`#{suggestion(name, names)}\nThe commands are #{Enum.join(names, ", ")}."}
    end
  end

  defp build(module, given, args) do
    with {:ok, color} <- color(given[:color] || "auto"),
         {:ok, dirs} <- dirs(Keyword.get_values(given, :dir)),
         {:ok, args} <- module.args(args) do
      {:ok,
       %__MODULE__{
         command: module,
         args: args,
         dirs: dirs,
         db: given[:db],
         profile: given[:profile] || "default",
         grants: Keyword.get_values(given, :grant),
         color: color,
         builtins: Keyword.get(given, :builtins, true),
         flags: Keyword.take(given, Keyword.keys(module.switches()))
       }}
    end
  end

  defp color(value) do
    case Enum.find(@colors, &(to_string(&1) == value)) do
      nil -> {:error, "--color expects one of #{Enum.join(@colors, ", ")}, got: #{value}"}
      color -> {:ok, color}
    end
  end

  defp dirs([]), do: {:ok, Enum.filter(["skills"], &File.dir?/1)}

  defp dirs(dirs) do
    case Enum.reject(dirs, &File.dir?/1) do
      [] -> {:ok, dirs}
      [dir | _] -> {:error, "--dir expects a folder, and there is none at #{dir}"}
    end
  end

  defp invalid({option, value}, switches) do
    name = option |> String.trim_leading("-") |> String.replace_prefix("no-", "")

    case Enum.find(switches, fn {key, _} -> dashed(key) == name end) do
      nil ->
        "unknown option `#{option}`" <> suggestion(option, Enum.map(switches, &("--" <> dashed(elem(&1, 0)))))

      {_, :boolean} ->
        "#{option} takes no value, got: #{value}"

      _ when value == nil ->
        "#{option} expects a value"

      {_, type} ->
        "#{option} expects a value of type #{type}, got: #{value}"
    end
  end

  defp dashed(key), do: key |> to_string() |> String.replace("_", "-")

  defp suggestion(given, known) do
    case Skillbook.Closest.to(given, known, 0.8) do
      nil -> ""
      close -> "; did you mean `#{close}`?"
    end
  end
end

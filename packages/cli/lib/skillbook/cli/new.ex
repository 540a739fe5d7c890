defmodule Skillbook.CLI.New do
  @moduledoc false
  # `skillbook new`: writes the page of a command, a workflow or a skill, or the module of a
  # command, from the texts that the Mix tasks `skillbook.gen.*` use, and lints it.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Init, Session, Terminal}
  alias Skillbook.Support.Scaffold

  @kinds [:command, :workflow, :skill, :handler]

  @impl true
  def switches, do: [kind: {:one_of, @kinds}]

  @impl true
  def args(args) when length(args) < 3, do: {:ok, args}

  def args([_name, _description, more | _]),
    do: {:error, "`new` takes a name and a description in quotes, got also: #{more}"}

  @impl true
  def run(%{args: args, flags: flags} = options) do
    with {:ok, name} <- given(args, 0, "a name", "Name, such as reports.late or tea-rules"),
         kind = flags[:kind] || kind(name),
         :ok <- Scaffold.check(kind, name),
         {:ok, description} <-
           given(args, 1, "a description in quotes", "What is it for, and when is it used"),
         {:ok, files} <- files(kind, name, description, options),
         :ok <- Init.write(files) do
      next(kind, name, files, options)
    else
      {:error, message} -> Terminal.usage_error(message, "new --help")
    end
  end

  # A dot makes a command's name.
  defp kind(name), do: if(String.contains?(name, "."), do: :command, else: :skill)

  # An argument, or the answer of a person.
  defp given(args, at, expected, question) do
    text =
      with nil <- Enum.at(args, at),
           do: if(Terminal.person?(), do: Terminal.ask(question), else: "")

    case String.trim(text) do
      "" -> {:error, "`new` expects #{expected}"}
      text -> {:ok, text}
    end
  end

  defp files(:handler, name, description, _options) do
    case {Session.modules(), Code.ensure_loaded?(Mix)} do
      {[{:modules, app} | _], true} ->
        module = Scaffold.module(app)

        {:ok,
         [
           Scaffold.handler(module, name, description),
           Scaffold.handler_test(module, name)
         ]}

      _none ->
        {:error,
         "a handler is a module of an application; run `mix skillbook new` in its project"}
    end
  end

  defp files(kind, name, description, options) do
    folder = Init.folder(options)

    file =
      case kind do
        :skill -> Scaffold.skill(name, description, folder)
        :command -> Scaffold.command(name, description, folder)
        :workflow -> Scaffold.workflow(name, description, folder, Init.step())
      end

    {:ok, [file]}
  end

  defp next(:handler, _name, [_module, {test, _text}], _options),
    do: Terminal.put("Next: mix test #{test}")

  defp next(kind, name, [{path, _text}], options) do
    Init.lint(path, options)

    Terminal.put([
      "Next: change #{path}, then\n  skillbook ",
      if(options.named, do: ["--dir ", Init.folder(options), " "], else: ""),
      if(kind == :workflow, do: "run -c '#{name}'", else: "get #{name}")
    ])
  end
end

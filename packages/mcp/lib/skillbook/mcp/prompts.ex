defmodule Skillbook.MCP.Prompts do
  @moduledoc false
  # Pages that people call by name, as prompts: hosts show them as slash commands. They are the
  # workflows, the commands without a handler and the skills that `user-invocable` allows, with
  # the declared flags as arguments. Texts of low trust are data and never instructions, so they
  # are none; nor are commands with a handler, which are tools.
  #
  # A page of prose becomes the text that a call of it returns. A workflow does not run here: its
  # prompt asks the model to call its tool, where the client can ask its user first.

  alias Skillbook.MCP.{Context, Error, Pagination}
  alias Skillbook.Reply.{Pipeline, ToolCall}
  alias Skillbook.Support.{Hidden, JSON}
  alias Skillbook.Tools.Name
  alias Skillbook.{Declaration, Entry, Flag, Result, Tools, View, Workflow}

  @size 128
  @max_description 1_024

  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def handle("prompts/list", params, %Context{view: view} = context) do
    entries = fn name ->
      view |> View.stream(after: name) |> Stream.filter(&prompt?(&1, context))
    end

    with {:ok, page, more} <- Pagination.of(entries, params, "prompts", @size, & &1.name),
         do: {:ok, Map.put(more, "prompts", Enum.map(page, &definition(&1, view)))}
  end

  def handle("prompts/get", params, context) do
    with {:ok, arguments} <- arguments(params),
         {:ok, entry} <- fetch(context, params["name"]),
         {:ok, text} <- text(entry, arguments, context) do
      message = %{"role" => "user", "content" => %{"type" => "text", "text" => text}}
      {:ok, %{"description" => description(entry), "messages" => [message]}}
    end
  end

  @doc "Whether an entry is a prompt. A workflow is none where its tool is not offered."
  @spec prompt?(Entry.t(), Context.t()) :: boolean()
  def prompt?(
        %Entry{kind: kind, handler: nil, trust: trust, user_invocable: true} = entry,
        context
      )
      when kind in [:command, :skill] and trust != :low do
    names = context.options[:tools][:names]

    names == nil or not Workflow.workflow?(entry) or
      match?({:ok, _entry}, Tools.find(context.view, entry.name, names))
  end

  def prompt?(_entry, _context), do: false

  @doc "The entry of a prompt's name."
  @spec fetch(Context.t(), term()) :: {:ok, Entry.t()} | {:error, Error.t()}
  def fetch(%Context{view: view} = context, name) when is_binary(name) do
    with true <- name != "" and String.valid?(name),
         %Entry{} = entry <- View.find(view, Name.resolve(view, name)),
         true <- prompt?(entry, context) do
      {:ok, entry}
    else
      _ -> {:error, Error.params("unknown prompt #{Error.quoted(name)}")}
    end
  end

  def fetch(_context, _name),
    do: {:error, Error.params("expected the name of a prompt as `name`")}

  @doc "The definition of a prompt."
  @spec definition(Entry.t(), View.t()) :: map()
  def definition(entry, view) do
    definition = %{"name" => Name.of(view, entry), "description" => description(entry)}

    definition =
      if entry.title,
        do: Map.put(definition, "title", Hidden.visible(entry.title)),
        else: definition

    case flags(view, entry) do
      [] -> definition
      flags -> Map.put(definition, "arguments", Enum.map(flags, &argument/1))
    end
  end

  defp description(entry),
    do: entry.description |> String.slice(0, @max_description) |> Hidden.visible()

  @doc "The flags of a prompt that are its arguments."
  @spec flags(View.t(), Entry.t()) :: [Skillbook.Flag.t()]
  def flags(view, entry) do
    case View.flags(view, entry.name) do
      {:ok, %Declaration{flags: flags}} -> Enum.reject(flags, &(&1.name == "help"))
      _ -> []
    end
  end

  defp argument(flag) do
    %{
      "name" => Flag.in_json(flag.name),
      "description" => Hidden.visible(flag.description),
      "required" => flag.required
    }
  end

  # Hosts send every argument as text.
  defp arguments(params) do
    case Map.get(params, "arguments") || %{} do
      %{} = arguments ->
        if Enum.all?(arguments, fn {_name, value} -> is_binary(value) end),
          do: {:ok, arguments},
          else: {:error, Error.params("expected texts as the values of `arguments`")}

      _ ->
        {:error, Error.params("expected an object as `arguments`")}
    end
  end

  defp text(entry, arguments, context) do
    # A host sends an empty text for an argument that its user left out.
    given = Map.reject(arguments, fn {_name, value} -> value == "" end)

    if Workflow.workflow?(entry),
      do: call(entry, given, context),
      else: fill(entry, given, context)
  end

  defp fill(entry, arguments, %Context{view: view}) do
    line = ToolCall.line(entry.name, arguments)

    # Nobody could be asked, since nothing runs.
    case Pipeline.commands(view, [line], json: true, by: :user, ask: fn _request -> :deny end) do
      [%Result{status: :error, content: text}] -> {:error, Error.params(text)}
      [%Result{content: text}] -> {:ok, text}
    end
  end

  defp call(entry, arguments, %Context{view: view}) do
    with :ok <- required(entry, arguments, view) do
      {:ok,
       "Call the tool #{Name.of(view, entry)} with the arguments #{JSON.encode(arguments)}, " <>
         "and go on with its result."}
    end
  end

  defp required(entry, arguments, view) do
    flags = flags(view, entry)
    names = Enum.map(flags, &Flag.in_json(&1.name))

    missing =
      for %{required: true, default: []} = flag <- flags,
          name = Flag.in_json(flag.name),
          not is_map_key(arguments, name),
          do: name

    case {missing, Map.keys(arguments) -- names} do
      {[], []} -> :ok
      {[name | _], _} -> {:error, Error.params("expected the argument #{Error.quoted(name)}")}
      {[], [name | _]} -> {:error, Error.params("unknown argument #{Error.quoted(name)}")}
    end
  end
end

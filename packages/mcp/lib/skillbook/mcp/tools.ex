defmodule Skillbook.MCP.Tools do
  @moduledoc false
  # Commands and skills as tools. Definitions and calls are those of `Skillbook.Tools`, so a call
  # passes every check of the executor. A hidden command is an unknown tool.
  #
  # A page may declare the shape of its command's data (`output:` in its frontmatter, JSON
  # Schema). Only then is the data in the result: it is not truncated, and it is not marked where
  # it comes from outside, as the text for the model is.

  require Logger

  alias Skillbook.Book.Cache
  alias Skillbook.MCP.{Context, Elicitation, Error, Pagination}
  alias Skillbook.Model.JSONSchema
  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.{Entry, Result, Tool, View, Workflow}

  @limit 128
  # Bytes of the data of a result as JSON.
  @max_data 1_000_000
  # Bytes of the images, sounds and files of a result.
  @max_media 8 * 1024 * 1024

  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def handle("tools/list", params, context) do
    with {:ok, page, more} <-
           Pagination.of(&tools(&1, context), params, "tools", @limit, &elem(&1, 0)),
         do: {:ok, Map.put(more, "tools", Enum.map(page, &elem(&1, 1)))}
  end

  def handle("tools/call", params, context) do
    case params do
      %{"name" => name} when is_binary(name) ->
        arguments = Map.get(params, "arguments") || %{}

        if is_map(arguments),
          do: call(name, arguments, params, context),
          else: {:error, Error.params("expected an object as `arguments`")}

      _ ->
        {:error, Error.params("expected the name of a tool as `name`")}
    end
  end

  # The definitions after a key, with their keys. They are kept as pages with their last keys. All
  # of a definition is in the view but the rule of `writes: :delegate`.
  defp tools(after_key, %Context{view: view} = context) do
    options = options(context)

    view.book
    |> Cache.keep({:tools, View.state(view), view.profile.writes, options}, fn ->
      for tools <- view |> Skillbook.Tools.list(options) |> Enum.chunk_every(@limit) do
        {key(List.last(tools)), page(tools, context)}
      end
    end)
    |> Stream.drop_while(fn {last, _page} -> after_key != nil and last <= after_key end)
    |> Stream.flat_map(fn {_last, page} -> :erlang.binary_to_term(page) end)
    |> Stream.drop_while(fn {key, _tool} -> after_key != nil and key <= after_key end)
  end

  defp page(tools, context),
    do: :erlang.term_to_binary(for tool <- tools, do: {key(tool), definition(tool, context)})

  # The tools that are no entries come first.
  defp key(%Tool{entry: nil, name: name}), do: <<0>> <> name
  defp key(%Tool{entry: name}), do: name

  defp options(context) do
    given = Keyword.get(context.options, :tools, [])
    # With globs, a tool that runs any command would be a way around them.
    run_command = if given[:names], do: [run_command: false], else: []
    Keyword.merge([limit: @limit], given) ++ run_command
  end

  defp globs(context), do: context.options[:tools][:names]

  # Definitions

  @doc "The definition of a tool, for a revision."
  @spec definition(Tool.t(), Context.t()) :: map()
  def definition(%Tool{} = tool, context) do
    entry = with name when name != nil <- tool.entry, do: View.fetch!(context.view, name)

    tool
    |> Skillbook.Tools.shape(:mcp)
    |> Map.put("annotations", annotations(tool, entry))
    |> put_output(output(entry))
  end

  # All hints are given: their defaults are those of the most dangerous tool.
  defp annotations(tool, entry) do
    %{
      "readOnlyHint" => tool.reads,
      "destructiveHint" => not tool.reads,
      "idempotentHint" => tool.reads,
      "openWorldHint" => open_world?(tool, entry)
    }
  end

  # The text of a page comes from the book; a handler may reach anything.
  defp open_world?(tool, nil), do: not tool.reads
  defp open_world?(_tool, entry), do: entry.handler != nil or Workflow.workflow?(entry)

  defp put_output(definition, nil), do: definition
  defp put_output(definition, schema), do: Map.put(definition, "outputSchema", schema)

  # A shape that cannot be checked is not promised.
  defp output(%Entry{data: %{"output" => schema}, trust: trust, name: name})
       when trust != :low and is_map(schema) do
    :ok = JSONSchema.check!(schema)
    schema
  rescue
    error in ArgumentError ->
      Logger.warning("skill #{name}: its `output` is ignored: #{Exception.message(error)}")
      nil
  end

  defp output(_entry), do: nil

  # Calls

  defp call(name, arguments, params, context) do
    with {:ok, entry} <- find(context, name),
         do: run(entry, %{"name" => name, "arguments" => arguments}, params, context)
  end

  defp run(entry, call, params, context) do
    case Elicitation.retry(params, call, context) do
      {:ok, %Result{} = result} ->
        {:ok, result(result, entry)}

      {:ask, answer} ->
        {:ok, answer}

      {:error, error} ->
        {:error, error}

      :first ->
        {options, asked} = Elicitation.options(call, context)
        options = [progress: context.progress] ++ options
        {result, _answer} = Skillbook.Tools.call(context.view, call, options)

        with :no <- Elicitation.input_required(result, asked),
             do: {:ok, result(result, entry)},
             else: ({:ask, answer} -> {:ok, answer})
    end
  end

  defp find(context, name) do
    case Skillbook.Tools.find(context.view, name, globs(context)) do
      {:ok, entry} -> {:ok, entry}
      {:error, error} -> {:error, Error.params(Exception.message(error))}
    end
  end

  # Results

  defp result(%Result{} = result, entry) do
    answer = %{"content" => content(result), "isError" => result.status in [:error, :skipped]}

    case {output(entry), result} do
      {nil, _result} -> answer
      {schema, %Result{status: :ok}} -> structured(answer, result, schema)
      {_schema, _result} -> answer
    end
  end

  defp content(result),
    do: [%{"type" => "text", "text" => result.content} | media(result.metadata[:media], result)]

  defp media(none, _result) when none in [nil, []], do: []

  defp media(list, result) do
    with true <- is_list(list) and not List.improper?(list) and Enum.all?(list, &medium?/1),
         size when size <= @max_media <- list |> Enum.map(&byte_size(&1.data)) |> Enum.sum() do
      Enum.map(list, &medium/1)
    else
      _ ->
        Logger.error(
          "skill #{result.name}: expected its :media to be a list of maps with :type and " <>
            ":data, of at most #{@max_media} bytes together; they are left out"
        )

        []
    end
  end

  defp medium?(%{type: type, data: data} = medium) do
    is_binary(data) and is_binary(type) and type =~ ~r/\A[a-z]+\/[\w.+-]+\z/ and
      (is_map_key(medium, :uri) or String.starts_with?(type, ["image/", "audio/"])) and
      Options.text?(Map.get(medium, :uri, "none"))
  end

  defp medium?(_other), do: false

  defp medium(%{uri: uri, type: "text/" <> _ = type, data: data} = medium) do
    if String.valid?(data),
      do: resource(%{"uri" => uri, "mimeType" => type, "text" => data}),
      else: medium |> Map.put(:type, "application/octet-stream") |> medium()
  end

  defp medium(%{uri: uri, type: type, data: data}),
    do: resource(%{"uri" => uri, "mimeType" => type, "blob" => Base.encode64(data)})

  defp medium(%{type: type, data: data}) do
    [kind, _] = String.split(type, "/")
    %{"type" => kind, "mimeType" => type, "data" => Base.encode64(data)}
  end

  defp resource(contents), do: %{"type" => "resource", "resource" => contents}

  # A tool with an output schema has to keep to it, so data that does not fit is our error.
  defp structured(answer, %Result{data: data, name: name}, schema) do
    json = JSON.encode(data)

    with true <- byte_size(json) <= @max_data,
         {:ok, data} <- JSON.decode(json),
         :ok <- JSONSchema.check(schema, data) do
      Map.put(answer, "structuredContent", data)
    else
      problem ->
        Logger.error("skill #{name}: its data is not as its page declares: #{inspect(problem)}")

        text =
          "`#{name}` ran, but its data is not as its page declares as `output`. Tell the user " <>
            "that its author has to correct it."

        %{"content" => [%{"type" => "text", "text" => text}], "isError" => true}
    end
  end
end

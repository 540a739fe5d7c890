defmodule Skillbook.MCP.Client.Tools do
  @moduledoc false
  # Makes a command of a tool: `label.tool`. Its page has only fields that are written here; texts
  # of the server are quoted in it.
  #
  # A property of the input schema becomes a flag. Of the schema only types and lists of words
  # count, since the server checks its input itself; other properties are JSON in a text.

  alias Skillbook.MCP.Client.{HTTP, Settings}
  alias Skillbook.Package.Publish
  alias Skillbook.Support.{External, JSON, UntilError}
  alias Skillbook.Frontmatter

  @max_name 128
  @max_definition 262_144
  @max_flags 100
  @max_values 500
  @max_description 600
  @max_body 4_000
  # Flags that have a meaning of their own in every command.
  @reserved ~w(help json)

  @type t :: %__MODULE__{
          tool: String.t(),
          name: String.t(),
          digest: String.t(),
          about: String.t(),
          flags: %{String.t() => {String.t(), atom()}} | :arguments,
          headers: [{[String.t()], String.t()}],
          page: Skillbook.Source.Code.page()
        }

  @enforce_keys [:tool, :name, :digest, :about, :flags, :headers, :page]
  defstruct [:tool, :name, :digest, :about, :flags, :headers, :page]

  @doc "Reads the definition of a tool, or says why it cannot be used."
  @spec read(Settings.t(), term()) :: {:ok, t()} | {:error, String.t() | nil, String.t()}
  def read(settings, %{"name" => tool, "inputSchema" => %{} = schema} = given)
      when is_binary(tool) do
    definition = Map.take(given, ~w(name title description inputSchema outputSchema annotations))
    text = JSON.encode(definition)

    with :ok <- name(tool),
         :ok <- size(text),
         :ok <- object(schema),
         {:ok, headers} <- headers(settings, schema) do
      digest = Publish.digest(text)

      made = %__MODULE__{
        tool: tool,
        name: "#{settings.label}.#{tool}",
        digest: digest,
        about: text(given["description"]) || text(given["title"]) || "",
        flags: :arguments,
        headers: headers,
        page: nil
      }

      {:ok, with_page(settings, made, flags(schema), given)}
    else
      {:error, reason} -> {:error, tool, reason}
    end
  end

  def read(_settings, %{"name" => tool}) when is_binary(tool),
    do: {:error, tool, "expected an object as its inputSchema"}

  def read(_settings, _other), do: {:error, nil, "expected an object with a name"}

  @doc "The path of a tool's page."
  @spec path(Settings.t(), String.t()) :: String.t()
  def path(settings, tool), do: "mcp:#{settings.label}/tools/#{tool}"

  defp name(tool) do
    cond do
      byte_size(tool) > @max_name ->
        {:error, "expected a name of at most #{@max_name} characters"}

      not (tool =~ ~r/\A[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\z/) ->
        {:error, "expected a name of letters, digits, `_`, `-` and dots between them"}

      tool in ["all", "help"] ->
        {:error, "the names `all` and `help` are those of get_skill"}

      true ->
        :ok
    end
  end

  defp size(text) when byte_size(text) <= @max_definition, do: :ok
  defp size(_text), do: {:error, "expected a definition of at most #{@max_definition} bytes"}

  defp object(%{"type" => "object"}), do: :ok
  defp object(_schema), do: {:error, "expected an inputSchema of the type \"object\""}

  # Flags

  defp flags(schema) do
    properties = with %{} = map <- schema["properties"], do: map, else: (_ -> %{})
    required = with list when is_list(list) <- schema["required"], do: list, else: (_ -> [])
    names = Enum.map(Map.keys(properties), &normalize/1)

    fits? =
      map_size(properties) <= @max_flags and Enum.uniq(names) == names and
        Enum.all?(properties, fn {name, schema} ->
          name =~ ~r/\A[a-z][A-Za-z0-9_-]{0,63}\z/ and normalize(name) not in @reserved and
            is_map(schema)
        end)

    if fits? do
      read = for {name, schema} <- Enum.sort(properties), do: flag(name, schema, name in required)
      {Enum.map(read, &elem(&1, 0)), Map.new(read, &elem(&1, 1))}
    else
      one_flag()
    end
  end

  defp one_flag do
    keys = [{"type", "text"}, {"description", "All arguments as a JSON object"}]
    {[{"arguments", keys}], :arguments}
  end

  defp normalize(name), do: name |> String.downcase() |> String.replace("_", "-")

  defp flag(name, schema, required?) do
    {kind, keys} = type(schema)
    about = text(schema["description"])
    json = if kind == :json, do: "As JSON."
    words = [json, about && External.line(about, 200)] |> Enum.filter(& &1) |> Enum.join(" ")

    keys =
      keys ++
        if(required?, do: [{"required", true}], else: []) ++
        if(words != "", do: [{"description", words}], else: [])

    {{name, keys}, {normalize(name), {name, kind}}}
  end

  defp type(%{"enum" => values} = schema) do
    cond do
      words?(values) -> {:text, [{"values", values}]}
      schema["type"] == "string" -> {:text, open_text()}
      true -> {:json, open_text()}
    end
  end

  defp type(%{"type" => "string"}), do: {:text, open_text()}
  defp type(%{"type" => "integer"}), do: {:value, [{"type", "integer"}]}
  defp type(%{"type" => "number"}), do: {:value, [{"type", "number"}]}
  defp type(%{"type" => "boolean"}), do: {:value, [{"type", "boolean"}]}

  defp type(%{"type" => "array", "items" => %{"type" => "string"} = items}) do
    case type(items) do
      {:text, keys} -> {:list, keys ++ [{"repeatable", true}]}
      _other -> {:json, open_text()}
    end
  end

  defp type(_schema), do: {:json, open_text()}

  defp open_text, do: [{"type", "text"}, {"empty", true}]

  # Words that can be written without quotes, and that do not differ in case alone.
  defp words?(values) do
    is_list(values) and values != [] and length(values) <= @max_values and
      Enum.all?(values, &(is_binary(&1) and &1 =~ ~r/\A[A-Za-z0-9_.-]{1,64}\z/)) and
      values |> Enum.uniq_by(&normalize/1) |> length() == length(values)
  end

  # Headers that mirror arguments

  defp headers(%{place: {:command, _}}, _schema), do: {:ok, []}

  defp headers(_settings, schema) do
    with {:ok, found} <- annotated(schema, [], []),
         :ok <- same_count(schema, found) do
      names = Enum.map(found, fn {_path, name} -> String.downcase(name) end)

      if Enum.uniq(names) == names,
        do: {:ok, found},
        else: {:error, "expected each x-mcp-header once"}
    end
  end

  # Only properties of properties may have one.
  defp annotated(%{"properties" => %{} = properties}, path, found) do
    UntilError.reduce(Enum.sort(properties), found, fn {name, schema}, found ->
      with {:ok, found} <- own_header(schema, path ++ [name], found),
           do: annotated(schema, path ++ [name], found)
    end)
  end

  defp annotated(_schema, _path, found), do: {:ok, found}

  defp own_header(%{"x-mcp-header" => name} = schema, path, found) do
    if is_binary(name) and name =~ ~r/\A[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}\z/ and
         schema["type"] in ~w(string integer boolean),
       do: {:ok, [{path, name} | found]},
       else: {:error, "expected an x-mcp-header that is a name, at a text, integer or boolean"}
  end

  defp own_header(_schema, _path, found), do: {:ok, found}

  defp same_count(schema, found) do
    if count([schema], 0) == length(found),
      do: :ok,
      else: {:error, "expected x-mcp-header only at properties"}
  end

  # A property may have this name too.
  defp count([], count), do: count

  defp count([%{} = map | rest], count) do
    own = if is_binary(map["x-mcp-header"]), do: 1, else: 0
    count(Map.values(map) ++ rest, count + own)
  end

  defp count([list | rest], count) when is_list(list), do: count(list ++ rest, count)
  defp count([_other | rest], count), do: count(rest, count)

  @doc "The headers of a call with these arguments."
  @spec call_headers(t(), map()) :: [{String.t(), String.t()}]
  def call_headers(%{headers: headers}, arguments) do
    for {path, name} <- headers,
        value = value(arguments, path),
        is_binary(value) or is_integer(value) or value in [true, false] do
      {"mcp-param-" <> name, HTTP.header_value(to_string(value))}
    end
  end

  # `false` is a value, and `for` would leave it out.
  defp value(arguments, path) do
    found =
      Enum.reduce_while(path, arguments, fn name, map ->
        case map do
          %{^name => value} -> {:cont, value}
          _ -> {:halt, nil}
        end
      end)

    if found == false, do: "false", else: found
  end

  @doc "Makes the tool's arguments of the flags of a call."
  @spec arguments(t(), map()) :: {:ok, map()} | {:error, String.t()}
  def arguments(%{flags: :arguments}, flags) do
    case decode(Map.get(flags, "arguments", "{}")) do
      {:ok, %{} = arguments} -> {:ok, arguments}
      _ -> {:error, "expected a JSON object as --arguments"}
    end
  end

  def arguments(%{flags: known}, flags) do
    UntilError.reduce(flags, %{}, fn {flag, value}, arguments ->
      case known[normalize(flag)] do
        {name, :json} ->
          case decode(value) do
            {:ok, value} -> {:ok, Map.put(arguments, name, value)}
            :error -> {:error, "expected JSON as --#{name}"}
          end

        {name, _kind} ->
          {:ok, Map.put(arguments, name, value)}

        nil ->
          {:ok, arguments}
      end
    end)
  end

  defp decode(text) when is_binary(text) do
    with {:error, _error} <- JSON.decode(text), do: :error
  end

  defp decode(value), do: {:ok, value}

  # The page

  # A property with the name of a field that restricts, such as `labels`, cannot be a flag there.
  defp with_page(settings, made, {declared, flags}, given) do
    {_path, text, _lines} = page = page(settings, made, declared, given)

    if flags != :arguments and match?({:error, _reason}, Frontmatter.access(text)),
      do: with_page(settings, made, one_flag(), given),
      else: %{made | flags: flags, page: page}
  end

  defp page(settings, made, declared, given) do
    about =
      if made.about == "", do: "no description", else: External.line(made.about, @max_description)

    origin = "the MCP server #{settings.label}"

    fields = [
      {"name", made.name},
      {"description", "A tool of #{origin} (external_input): #{about}"},
      {"effects", Atom.to_string(effects(settings, made.tool, given["annotations"]))},
      {"timeout", "#{settings.timeout + 1_000}ms"},
      {"flags", if(declared == [], do: %{}, else: declared)},
      {"handler", handler(settings)}
    ]

    text = if made.about == "", do: "none", else: made.about

    body =
      "The MCP server #{settings.label} runs this tool.\n\n" <>
        External.block("its description", text, max: @max_body) <> "\n"

    {path(settings, made.tool), Frontmatter.write(fields, body), nil}
  end

  @doc "The name of the handler in pages of tools. Only the catalog of the server knows it."
  @spec handler(Settings.t()) :: String.t()
  def handler(settings), do: "mcp #{settings.label}"

  # A hint of the server can only make a tool more restricted.
  defp effects(settings, tool, annotations) do
    hints = if is_map(annotations), do: annotations, else: %{}
    writes? = hints["readOnlyHint"] == false or hints["destructiveHint"] == true
    if Settings.reads?(settings, tool) and not writes?, do: :read, else: :write
  end

  defp text(value), do: if(is_binary(value) and String.trim(value) != "", do: value)
end

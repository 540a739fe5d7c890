defmodule Skillbook.Web.Page.FlagFields do
  @moduledoc false
  # Flags as fields of a form: those of a new page, and those in the frontmatter of a text. The
  # fields of the first flag are named `flag1_name`, `flag1_type` and so on.
  #
  # The form of a text has the text, too, and both can be changed at once. `flag1_was` is the line
  # that its fields stand for, so only flags that were changed in the fields change the text.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Flags.Lines
  alias Skillbook.Support.Scaffold
  alias Skillbook.Web.{Html, Request}

  {max_flags, max_text} = Lines.limits()
  @max_flags max_flags
  @max_text max_text
  @max_name 100

  # The line of a flag has all of its fields.
  @max_line 10 * max_text
  @texts ~w(name type values min max default description)a
  @boxes ~w(required repeatable remove)a

  @typedoc "The errors of fields, by their names."
  @type errors :: [{String.t() | nil, String.t()}]

  # Reading

  @doc "The flags of a form, up to a number of them."
  @spec read(Request.fields(), pos_integer()) :: [map()]
  def read(fields, max \\ @max_flags) do
    for at <- 1..max, is_binary(fields["flag#{at}_name"]) do
      texts = for key <- @texts, into: %{}, do: {key, limited(fields["flag#{at}_#{key}"])}
      texts = Map.put(texts, :was, limited(fields["flag#{at}_was"], @max_line))
      boxes = for key <- @boxes, into: %{}, do: {key, fields["flag#{at}_#{key}"] == "1"}
      type = if texts.type in Scaffold.types(), do: texts.type, else: "text"
      texts |> Map.merge(boxes) |> Map.put(:type, type)
    end
  end

  @doc "A flag without values."
  @spec new() :: map()
  def new, do: %{"flag1_name" => ""} |> read() |> hd()

  @doc "The fields with these flags for those that they have."
  @spec write(Request.fields(), [map()]) :: Request.fields()
  def write(fields, flags) do
    kept = Map.reject(fields, fn {name, _value} -> name =~ ~r/\Aflag\d+_/ end)

    for {flag, at} <- Enum.with_index(flags, 1), {key, value} <- flag, into: kept do
      {"flag#{at}_#{key}", if(key in @boxes, do: if(value, do: "1"), else: value)}
    end
  end

  @doc """
  Changes a text as the flags of its form say: the fields without flags, whose `content` is the
  new text; the fields with one flag more; or the errors.
  """
  @spec put(Request.fields()) ::
          {:ok, Request.fields()} | {:again, Request.fields()} | {:error, errors()}
  def put(%{"step" => "add"} = fields),
    do: {:again, write(fields, Enum.take(read(fields) ++ [new()], @max_flags))}

  def put(%{"content" => content} = fields) do
    changes =
      for flag <- read(fields),
          do: {if(flag.was != "", do: flag.was), if(not flag.remove, do: flag)}

    case Lines.put(content, changes) do
      {:ok, text} -> {:ok, %{write(fields, []) | "content" => text}}
      {:error, {{at, key}, text}} -> {:error, [{"flag#{at + 1}_#{key}", text}]}
      {:error, {nil, text}} -> {:error, [{nil, text}]}
    end
  end

  defp limited(text, max \\ @max_text)
  defp limited(text, max) when is_binary(text), do: text |> String.slice(0, max) |> String.trim()
  defp limited(_other, _max), do: ""

  # Writing

  @doc """
  The fields of a flag. `:last` is the button or the box that removes it; `:name` are options of
  the field of its name.
  """
  @spec fieldset(map(), pos_integer(), errors(), keyword()) :: Html.safe()
  def fieldset(flag, at, errors, options) do
    types = for type <- Scaffold.types(), do: {type, String.replace(type, "_", " ")}

    text = fn key, label, options ->
      name = "flag#{at}_#{key}"
      text_field(name, label, flag[key], [error: wrong(errors, name)] ++ options)
    end

    name = [maxlength: @max_name, spellcheck: "false", placeholder: "due-before"]
    more = [optional: true, maxlength: @max_text]

    tag(:fieldset, [class: "flag"], [
      options[:legend],
      text.(:name, "Name", name ++ (options[:name] || [])),
      choice("flag#{at}_type", "Type", flag.type, types),
      text.(:default, "Default", more),
      text.(:values, "Values, for one of", [placeholder: "open, closed"] ++ more),
      text.(:min, "Min, for numbers", more),
      text.(:max, "Max, for numbers", more),
      text.(:description, "Description", [wide: true] ++ more),
      checkbox("flag#{at}_required", "Every call needs it", flag.required),
      checkbox("flag#{at}_repeatable", "It takes several values", flag.repeatable),
      options[:last]
    ])
  end

  @doc "The error of a field as a sentence, or nil."
  @spec wrong(errors(), String.t()) :: String.t() | nil
  def wrong(errors, field),
    do: with({^field, text} <- List.keyfind(errors, field, 0), do: sentence(text))

  @doc """
  The flags of the text of a form: as they were typed, if the form has them already, else as they
  are in the text. Those that the form cannot show have the reason.
  """
  @spec section(Request.fields(), errors()) :: Html.safe()
  def section(%{"content" => content} = fields, errors) do
    tag(:section, [aria_labelledby: "flags"], [
      tag(:h2, [id: "flags"], "Flags"),
      case {Lines.read(content), read(fields)} do
        {{:ok, items}, typed} ->
          flags(items, typed, fields, errors)

        {{:error, _reason}, [_ | _] = typed} ->
          flags([], typed, fields, errors)

        {{:error, reason}, []} ->
          tag(:p, [class: "help"], ["No form: ", shown(reason), ". ", below()])
      end
    ])
  end

  defp below, do: tag(:a, [href: "#field-content"], "Edit the text below")

  defp flags(items, typed, fields, errors) do
    own = for {:flag, flag, line} <- items, do: Map.merge(flag, %{was: line, remove: false})
    forms = if typed == [], do: own, else: typed
    added = if fields["step"] == "add", do: length(forms)

    [
      for({flag, at} <- Enum.with_index(forms, 1), do: details(flag, at, errors, at == added)),
      for({:text, name, reason} <- items, do: left(name, reason)),
      if(length(forms) < @max_flags, do: add())
    ]
  end

  defp details(flag, at, errors, added?) do
    changed? = flag.was != Scaffold.flag_line(flag) or flag.remove
    wrong? = Enum.any?(errors, fn {field, _text} -> field && field =~ ~r/\Aflag#{at}_/ end)
    name = if flag.was == "", do: "New flag", else: tag(:code, [], "--" <> was(flag))

    tag(:details, [open: changed? or wrong?], [
      tag(:summary, [], [name, " ", tag(:span, [class: "help"], about(flag))]),
      tag(:input, type: "hidden", name: "flag#{at}_was", value: flag.was),
      fieldset(flag, at, errors,
        legend: tag(:legend, [class: "hidden"], ["Flag ", name]),
        name: [autofocus: added?],
        last: checkbox("flag#{at}_remove", "Remove it", flag.remove)
      )
    ])
  end

  defp was(flag), do: flag.was |> String.split(":", parts: 2) |> hd()

  defp about(flag) do
    type = String.replace(flag.type, "_", " ")
    texts = [type, flag.required && "required", flag.repeatable && "several values"]
    texts |> Enum.filter(& &1) |> Enum.join(", ")
  end

  defp left(name, reason) do
    tag(:p, [class: "help"], [tag(:code, [], "--" <> name), ": ", shown(reason), ". ", below()])
  end

  # Keys are in backticks.
  defp shown(reason) do
    for {part, at} <- reason |> String.split("`") |> Enum.with_index(),
        do: if(rem(at, 2) == 1, do: tag(:code, [], part), else: part)
  end

  defp add do
    tag(:p, [], tag(:button, [type: "submit", name: "step", value: "add"], "Add a flag"))
  end
end

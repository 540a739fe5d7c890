defmodule Skillbook.Web.Page.NewFile do
  @moduledoc false
  # The form that begins a new page in a file: a link for each kind, a name, a description, and
  # the flags of a command, one after the other. The page is the one that `skillbook new` makes of
  # them. Nothing of it needs a script: "Add a flag" sends the form, and the answer has one more.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.FlagFields, only: [wrong: 2]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Support.{Number, Scaffold}
  alias Skillbook.Web.{Request, Response}
  alias Skillbook.Web.Page.{FlagFields, Layout}

  @max_flags 20
  @max_name 100
  @max_text 1_000

  @kinds [{"command", "Command"}, {"workflow", "Workflow"}, {"skill", "Skill"}]
  @about %{
    "command" => "A model follows its page when it is called, with values for its flags.",
    "workflow" => "It runs other commands, one after the other, without a model.",
    "skill" => "Instructions that a model reads when a request is about them."
  }
  @example %{"command" => "mail.send", "workflow" => "reports.weekly", "skill" => "tea-rules"}

  @doc "The first form, for the kind and name of a query or of a form that has an error."
  @spec page(Request.t(), Request.fields(), {String.t(), String.t()} | nil) :: Response.t()
  def page(request, fields, error \\ nil) do
    kind = kind_of(fields)
    flags = if kind == "skill", do: [], else: FlagFields.read(fields, @max_flags)
    errors = List.wrap(error)

    form =
      form(request, ["new", "file"], [
        # Enter presses the first button of a form.
        tag(
          :button,
          [name: "step", value: "begin", class: "hidden"] ++ unseen(),
          "Write the page"
        ),
        tag(:input, type: "hidden", name: "kind", value: kind),
        text_field("name", "Name", limited(fields["name"]),
          required: true,
          error: wrong(errors, "name"),
          maxlength: @max_name,
          spellcheck: "false",
          help: "Such as #{@example[kind]}."
        ),
        text_field("description", "Description", limited(fields["description"]),
          required: true,
          error: wrong(errors, "description"),
          maxlength: @max_text,
          help: "What is it for, and when is it used? Models choose by it."
        ),
        for {flag, at} <- Enum.with_index(flags, 1) do
          fieldset(flag, at, errors, fields["step"] == "add" and at == length(flags))
        end,
        tag(:div, [class: "buttons"], [
          step("begin", "Write the page", "primary"),
          if(kind != "skill" and length(flags) < @max_flags,
            do: step("add", "Add a flag", nil, true)
          ),
          tag(:a, [class: "button", href: Layout.path(request, ["skills"])], "Cancel")
        ])
      ])

    content = [kinds(request, kind), tag(:p, [class: "help"], @about[kind]), form]

    Layout.page(request, "New #{kind}", content,
      section: :skills,
      back: {"Skills", Layout.path(request, ["skills"])},
      errors: errors(for {field, text} <- errors, do: {field, sentence(text)}),
      status: if(error, do: 422, else: 200)
    )
  end

  defp unseen, do: [tabindex: "-1", aria_hidden: "true"]

  defp kinds(request, kind) do
    links =
      for {value, text} <- @kinds do
        href = Layout.path(request, ["new", "file"], kind: value)
        current = if value == kind, do: "page"
        tag(:li, [], tag(:a, [href: href, aria_current: current], text))
      end

    tag(:nav, [class: "tabs", aria_label: "Kinds of pages"], tag(:ul, [], links))
  end

  # With `early?`, fields may still be empty.
  defp step(value, text, class, early? \\ false) do
    attributes = [type: "submit", name: "step", value: value, class: class]
    tag(:button, attributes ++ [formnovalidate: early?], text)
  end

  defp fieldset(flag, at, errors, added?) do
    hidden = tag(:span, [class: "hidden"], " flag #{at}")

    FlagFields.fieldset(flag, at, errors,
      legend: tag(:legend, [], ["Flag ", at]),
      name: [required: true, autofocus: added?],
      last: step("remove-#{at}", ["Remove", hidden], "quiet", true)
    )
  end

  @doc """
  Reads the form: the file of a new page as `{path, text}`, below an empty folder; the form again,
  with a flag more or less; or the field that is wrong, and why.
  """
  @spec read(Request.fields()) ::
          {:ok, {Path.t(), String.t()}} | {:again, Request.fields()} | {:error, error}
        when error: {String.t(), String.t()}
  def read(fields) do
    flags = FlagFields.read(fields, @max_flags)

    case fields["step"] do
      "add" ->
        {:again, FlagFields.write(fields, Enum.take(flags ++ [FlagFields.new()], @max_flags))}

      "remove-" <> at ->
        {:again, FlagFields.write(fields, without(flags, at))}

      _begin ->
        file(fields, flags)
    end
  end

  @doc "The path of a page of this kind and name."
  @spec path(Request.fields()) :: {:ok, Path.t()} | {:error, {String.t(), String.t()}}
  def path(fields) do
    with {:ok, {path, _text}} <- made(fields, "A page", []), do: {:ok, path}
  end

  defp file(fields, flags) do
    with :ok <- checked(flags),
         {:ok, file} <- made(fields, String.trim(limited(fields["description"])), flags),
         do: {:ok, file}
  end

  defp made(fields, description, flags) do
    name = fields["name"] |> limited() |> String.slice(0, @max_name) |> String.trim()
    kind = kind_of(fields)

    case Scaffold.check(if(kind == "skill", do: :skill, else: :command), name) do
      {:error, text} -> {:error, {"name", text}}
      :ok when description == "" -> {:error, {"description", "expected a description, got none"}}
      :ok when kind == "skill" -> {:ok, Scaffold.skill(name, description, "")}
      :ok when kind == "command" -> {:ok, Scaffold.command(name, description, "", flags)}
      :ok -> {:ok, Scaffold.workflow(name, description, "", "tasks.search --status todo", flags)}
    end
  end

  defp checked(flags) do
    names = Enum.map(flags, & &1.name)

    flags
    |> Enum.with_index(1)
    |> Enum.find_value(:ok, fn {flag, at} ->
      case Scaffold.check_flag(flag) do
        {:error, {key, text}} ->
          {:error, {"flag#{at}_#{key}", text}}

        :ok ->
          if flag.name in Enum.take(names, at - 1),
            do: {:error, {"flag#{at}_name", "expected another name, got --#{flag.name} again"}}
      end
    end)
  end

  # Fields

  defp kind_of(fields),
    do: if(List.keymember?(@kinds, fields["kind"], 0), do: fields["kind"], else: "command")

  defp without(flags, at) do
    case Number.integer(at) do
      {at, ""} when at > 0 -> List.delete_at(flags, at - 1)
      _other -> flags
    end
  end

  defp limited(text) when is_binary(text), do: String.slice(text, 0, @max_text)
  defp limited(_other), do: ""
end

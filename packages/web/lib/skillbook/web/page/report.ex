defmodule Skillbook.Web.Page.Report do
  @moduledoc false
  # The common parts of the pages about prompts, runs and problems: the answer as JSON or HTML,
  # the pages of a section beside each other, fields of the query, and numbers.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]

  alias Skillbook.Support.{Number, Operation}
  alias Skillbook.{Part, UnknownSkillError, View}
  alias Skillbook.Web.{Caller, Html, Request, Response}
  alias Skillbook.Web.Page.{Layout, Parts, Rights}

  # The pages of each room: its id, text, path, and whether only operators may see it.
  @pages %{
    try: [
      {:chat, "Conversation", ["chat"], false},
      {:try, "Command", ["try"], false},
      {:route, "Request", ["route"], false},
      {:prompt, "Prompt", ["prompt"], false},
      {:tools, "Tools", ["tools"], false},
      {:explain, "Name", ["explain"], false}
    ],
    activity: [
      {:runs, "Runs", ["runs"], false},
      {:approvals, "Approvals", ["approvals"], false},
      {:agents, "Agents", ["agents"], true},
      {:conversations, "Conversations", ["conversations"], true},
      {:usage, "Usage", ["usage"], false}
    ],
    accounts: [
      {:connections, "Accounts", ["connections"], false},
      {:servers, "Servers", ["servers"], true}
    ],
    health: [
      {:diagnostics, "Problems", ["diagnostics"], false},
      {:status, "Status", ["status"], true}
    ]
  }

  @doc """
  Answers with JSON of the data, or with a page of the content that the function makes.

  `title` is that of the page, `section` and `page` are its place in the navigation.
  """
  @spec reply(Request.t(), map(), atom(), atom(), String.t(), content, keyword()) :: Response.t()
        when content: (() -> Html.content())
  def reply(request, data, section, page, title, content, options \\ []) do
    if Request.wants_json?(request) do
      Response.json(Keyword.get(options, :status, 200), data)
    else
      content = [pages(request, section, page), content.()]
      Layout.page(request, title, content, [section: section] ++ options)
    end
  end

  # The pages of the room.
  defp pages(request, section, page) do
    items =
      for {id, text, segments, operators?} <- @pages[section],
          request.caller.operator? or not operators? do
        current = if id == page, do: "page"
        link = tag(:a, [href: Layout.path(request, segments), aria_current: current], text)
        tag(:li, [], link)
      end

    # A single page needs no tabs.
    if length(items) > 1,
      do: tag(:nav, [class: "tabs", aria_label: "Pages of this room"], tag(:ul, [], items))
  end

  @doc "Runs a function for operators; for others the page does not exist."
  @spec for_operators(Request.t(), (() -> answer)) :: answer | Response.t() when answer: term()
  def for_operators(%Request{caller: %Caller{operator?: true}}, function), do: function.()
  def for_operators(request, _function), do: Layout.not_found(request)

  @doc """
  Does what a form asks for, for an operator who may write: the operation that `operations` has
  for the field `action`. Answers with JSON of the outcome, or with a redirect.

  `view` makes the view of the operation. A missing entry is a 404.
  """
  @spec submit(Request.t(), (Request.t() -> View.t()), [String.t()], operations) :: Response.t()
        when operations: %{(String.t() | nil) => atom()}
  def submit(request, view, back, operations, told \\ fn _text, _fields -> %{} end) do
    for_operators(request, fn ->
      Rights.with_writes(request, fn ->
        with {:ok, fields} <- Request.form(request),
             {:ok, name} <- Map.fetch(operations, fields["action"]),
             %{caller: :operator} = operation = Part.operation(name),
             text when is_binary(text) <- fields[Atom.to_string(operation.subject)] do
          back = Layout.path(request, back, told.(text, fields))
          submit(request, view, back, operation, text, fields)
        else
          _other -> Layout.failed(request, 400, "The form could not be read.")
        end
      end)
    end)
  end

  defp submit(request, view, back, operation, text, fields) do
    by = [by: Caller.by(request.caller), operator: true]

    with {:ok, input} <- input(operation, fields),
         {:ok, result} <- operation.run.(view.(request), text, input ++ by) do
      if Request.wants_json?(request),
        do: Response.json(200, Operation.outcome(operation, text, result)),
        else: Response.redirect(303, back)
    else
      {:refused, text} -> Layout.failed(request, 422, text)
      {:error, %UnknownSkillError{}} -> Layout.not_found(request)
      {:error, error} -> refused(request, Operation.status(operation, error), error)
    end
  end

  @doc "Says why something was not done."
  @spec refused(Request.t(), 400..599, Exception.t()) :: Response.t()
  def refused(request, status, error),
    do: Layout.failed(request, status, Parts.sentence(Exception.message(error)))

  @doc "Reads the input of an operation from the fields of a form."
  @spec input(Operation.t(), Request.fields()) :: {:ok, keyword()} | {:refused, String.t()}
  def input(operation, fields) do
    fields = Map.new(fields, fn {name, value} -> {name, trim(value)} end)

    # PostgreSQL cannot store NUL.
    if Enum.any?(Map.values(fields), &(is_binary(&1) and String.contains?(&1, <<0>>))),
      do: {:refused, "Expected text without NUL."},
      else: with({:error, text} <- Operation.read(operation, fields), do: {:refused, text})
  end

  defp trim(text) when is_binary(text), do: String.trim(text)
  defp trim(other), do: other

  @doc "Whether the caller gets buttons that change how the book runs, and may use them."
  @spec operates?(Request.t()) :: boolean()
  def operates?(request), do: request.caller.operator? and Rights.check(request) == :ok

  @doc "The name of the caller's book."
  @spec book(Request.t()) :: atom()
  def book(request), do: Caller.view(request).book

  @doc "A time of the database."
  @spec time(String.t() | nil) :: DateTime.t() | nil
  def time(nil), do: nil

  def time(text) do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end

  @doc "Milliseconds as text."
  @spec milliseconds(number() | nil) :: String.t()
  def milliseconds(nil), do: "–"
  def milliseconds(number) when number >= 10_000, do: decimals(number / 1000, 1) <> " s"
  def milliseconds(number) when is_integer(number), do: "#{number} ms"
  def milliseconds(number), do: decimals(number, 1) <> " ms"

  @doc "A number with so many decimals."
  @spec decimals(number(), non_neg_integer()) :: String.t()
  def decimals(number, count), do: :erlang.float_to_binary(number / 1, decimals: count)

  @doc "A link to the page of an entry."
  @spec entry(Request.t(), String.t()) :: Html.safe()
  def entry(request, name),
    do: tag(:a, [href: Layout.path(request, ["skills", name])], name)

  @doc "A text field of the query, cut to a length; `\"\"` if it is missing."
  @spec field(Request.t(), String.t(), pos_integer()) :: String.t()
  def field(request, name, max \\ 2_000) do
    case Request.query(request) do
      %{^name => text} when is_binary(text) -> String.slice(text, 0, max)
      _other -> ""
    end
  end

  @doc "The hidden fields that keep the view of another profile in a form with the method GET."
  @spec keep_as(Request.t()) :: Html.content()
  def keep_as(request) do
    if id = Layout.as(request), do: tag(:input, [type: "hidden", name: "as", value: id], nil)
  end

  @doc "A form with the method GET, whose fields are in the query of the same page."
  @spec query_form(Request.t(), [String.t()], Html.content(), String.t()) :: Html.safe()
  def query_form(request, segments, fields, button \\ "Show") do
    tag(:form, [method: "get", action: Request.path(request, segments), class: "query"], [
      keep_as(request),
      fields,
      tag(:button, [type: "submit"], button)
    ])
  end

  @doc "A choice of `{value, text}` in such a form."
  @spec select(String.t(), String.t(), String.t(), [{String.t(), String.t()}]) :: Html.content()
  def select(name, label, chosen, items) do
    options =
      for {value, text} <- items,
          do: tag(:option, [value: value, selected: value == chosen], text)

    pair(name, label, tag(:select, [id: name, name: name], options))
  end

  @doc "A label with its input, which stay together where such a form is broken into lines."
  @spec pair(String.t(), String.t(), Html.content()) :: Html.safe()
  def pair(id, label, input),
    do: tag(:span, [class: "pair"], [tag(:label, [for: id], label), input])

  @doc "A box to tick in such a form; its value is `1`."
  @spec tick(String.t(), String.t(), boolean()) :: Html.safe()
  def tick(name, label, checked?) do
    box = [type: "checkbox", id: name, name: name, value: "1", checked: checked?]
    tag(:span, [class: "field check"], [tag(:input, box), tag(:label, [for: name], label)])
  end

  @doc "A part of a page with a heading. The id is unique in the page."
  @spec section(String.t(), String.t(), Html.content()) :: Html.safe()
  def section(id, title, content) do
    tag(:section, [aria_labelledby: id <> "-heading"], [
      tag(:h2, [id: id <> "-heading"], title),
      content
    ])
  end

  @doc "A text that may be long: its first line, which opens to all of it."
  @spec long(String.t() | nil) :: Html.content()
  def long(empty) when empty in [nil, ""], do: "–"

  def long(text) do
    if String.length(text) <= 80 and not String.contains?(text, "\n") do
      text
    else
      [first | _] = String.split(text, "\n", parts: 2)

      tag(:details, [], [
        tag(:summary, [], [String.slice(first, 0, 80), if(String.length(first) > 80, do: "…")]),
        tag(:pre, [tabindex: "0"], text)
      ])
    end
  end

  @doc "The page of a list that the query names: its number, how many there are, and its items."
  @spec page_of(Request.t(), [item], pos_integer()) :: {pos_integer(), pos_integer(), [item]}
        when item: term()
  def page_of(request, items, size) do
    pages = max(ceil(length(items) / size), 1)

    page =
      case Number.integer(field(request, "page", 10)) do
        {page, ""} when page >= 1 and page <= pages -> page
        _other -> 1
      end

    {page, pages, Enum.slice(items, (page - 1) * size, size)}
  end
end

defmodule Skillbook.MCP.Elicitation do
  @moduledoc false
  # Asks the user of a client for an approval, by a form of the protocol.
  #
  # In the revisions with sessions the question is a request to the client, and the call waits
  # for the answer. Without sessions the call ends with the question, and the client repeats it
  # with the answer: the call is stored as a `Skillbook.Approval`. Its reference is a hash of the
  # caller, the call and the `requestState`, a secret with an end, which the client sends back. So
  # nothing that a client can send runs anything but the call that its own user was asked about,
  # once, on any node of the book's database. References of other approvals are no such hashes.
  #
  # Where the book has an `:ask` callback, that decides as everywhere, and no client is asked.

  alias Skillbook.Approval.Table
  alias Skillbook.MCP.{Context, Error}
  alias Skillbook.Support.{External, Hidden, JSON}
  alias Skillbook.{Approval, Book, Command, Request, Result}

  @key "approval"
  # Seconds in which the client may come back with an answer.
  @expire 600
  @nonce 24
  # Characters of a value that the question shows, and values.
  @max_value 1_000
  @max_values 40

  @typedoc "The state of a question that may come back, and the reference that it stands for."
  @type asked :: %{state: String.t(), ref: String.t(), used: :atomics.atomics_ref()} | nil

  @doc "The options for the run of a call: how permission is asked for."
  @spec options(map(), Context.t()) :: {keyword(), asked()}
  def options(call, context) do
    book = Book.find(context.view.book)

    case way(book, context) do
      :book -> {[], nil}
      :client -> {[ask: &ask_client(&1, context)], nil}
      :store -> {[ask: fn _request -> :pending end], nil}
      :retry -> later(call, context)
    end
  end

  defp way(nil, _context), do: :book
  defp way(%Book{ask: ask}, _context) when ask != nil, do: :book

  defp way(book, context) do
    cond do
      not Context.elicits?(context) -> if(Book.sql(book), do: :store, else: :book)
      context.ask_client != nil -> :client
      not Context.stateless?(context) -> :store
      Book.sql(book) -> :retry
      true -> :book
    end
  end

  # At once

  defp ask_client(%Request{} = request, context) do
    line = Command.line(request.written)
    question = question(request.entry.name, request.command.flags, line)

    case context.ask_client.("elicitation/create", question, :infinity) do
      {:ok, answer} -> decision(answer)
      {:error, _reason} -> {:deny, "The client did not ask its user."}
    end
  end

  defp decision(%{"action" => "accept"}), do: :allow
  defp decision(%{"action" => "decline"}), do: :deny
  defp decision(_answer), do: {:deny, "The question was closed without an answer."}

  # Later

  defp later(call, context) do
    ends = System.os_time(:second) + @expire
    state = Base.url_encode64(:crypto.strong_rand_bytes(@nonce) <> <<ends::64>>, padding: false)
    asked = %{state: state, ref: ref(state, call, context), used: :atomics.new(1, [])}

    # The first command that asks is the call itself, or one of its steps. Only one has the
    # reference.
    ask = fn _request ->
      if :atomics.add_get(asked.used, 1, 1) == 1, do: {:pending, asked.ref}, else: :pending
    end

    {[ask: ask], asked}
  end

  # The parts have their lengths, so that no other parts have the same hash.
  defp ref(state, %{"name" => name, "arguments" => arguments}, context) do
    parts = [
      state,
      to_string(context.view.book),
      context.profile.id,
      name,
      JSON.encode(arguments)
    ]

    parts = for part <- parts, do: [<<byte_size(part)::64>>, part]
    "mcp-" <> Base.encode16(:crypto.hash(:sha256, parts), case: :lower)
  end

  @doc """
  The answer that asks the client, if the call itself waits for an approval; else `:no`. For a
  step of the call, the text of the result says that it waits.
  """
  @spec input_required(Result.t(), asked()) :: {:ask, map()} | :no
  def input_required(
        %Result{status: :pending, data: %Approval{ref: ref} = approval},
        %{ref: ref} = asked
      ),
      do: {:ask, ask_again(approval, asked.state)}

  def input_required(_result, _asked), do: :no

  defp ask_again(approval, state) do
    request = %{
      "method" => "elicitation/create",
      "params" => question(approval.name, approval.flags, approval.command)
    }

    %{
      "resultType" => "input_required",
      "inputRequests" => %{@key => request},
      "requestState" => state
    }
  end

  @doc """
  Reads the answer of a call that comes back with one, and carries it out.

    * `:first` - the call does not come back
    * `{:ok, result}` - it has run, or was declined
    * `{:ask, answer}` - the answer is missing, so the client is asked again
  """
  @spec retry(map(), map(), Context.t()) ::
          :first | {:ok, Result.t()} | {:ask, map()} | {:error, Error.t()}
  def retry(params, call, context) do
    case params do
      # The field is of the newest revision.
      %{"requestState" => state} ->
        if Context.stateless?(context),
          do: answered(state, params["inputResponses"], call, context),
          else: :first

      _ ->
        :first
    end
  end

  defp answered(state, answers, call, context) do
    with {:ok, ends} <- read(state),
         :ok <- in_time(ends),
         {:ok, sql} <- sql(context),
         ref = ref(state, call, context),
         {:ok, %{approval: %Approval{} = approval}} <- Table.fetch(sql, context.view.book, ref) do
      answer = if is_map(answers), do: answers[@key]
      decide(answer, approval, state, context)
    else
      _ -> {:error, unknown()}
    end
  end

  # One text for all reasons: a state says nothing about other states.
  defp unknown do
    Error.params(
      "expected the `requestState` of this call, within #{div(@expire, 60)} minutes of its " <>
        "question; call the tool again without it"
    )
  end

  defp read(state) when is_binary(state) and byte_size(state) < 100 do
    case Base.url_decode64(state, padding: false) do
      {:ok, <<_nonce::binary-size(@nonce), ends::64>>} -> {:ok, ends}
      _ -> :error
    end
  end

  defp read(_state), do: :error

  defp in_time(ends), do: if(System.os_time(:second) <= ends, do: :ok, else: :error)

  defp sql(context) do
    with %Book{} = book <- Book.find(context.view.book),
         sql when sql != nil <- Book.sql(book),
         do: {:ok, sql}
  end

  defp decide(%{"action" => "accept"}, approval, _state, context) do
    case Skillbook.approve(context.view.book, approval.ref, by: by(context)) do
      {:ok, %Approval{result: %Result{} = result}} -> {:ok, result}
      {:error, error} -> {:ok, failed(error, approval)}
    end
  end

  defp decide(%{"action" => action}, approval, _state, context)
       when action in ["decline", "cancel"] do
    reason = if action == "cancel", do: "The question was closed without an answer."
    options = [by: by(context), reason: reason]

    case Skillbook.deny(context.view.book, approval.ref, options) do
      {:ok, _denied} ->
        error = %Skillbook.PolicyError{kind: :denied, name: approval.name, text: reason}
        {:ok, failed(error, approval)}

      {:error, error} ->
        {:ok, failed(error, approval)}
    end
  end

  defp decide(_missing, %Approval{status: :pending} = approval, state, _context),
    do: {:ask, ask_again(approval, state)}

  defp decide(_missing, _decided, _state, _context), do: {:error, unknown()}

  defp failed(error, approval) do
    result = Result.error(error)
    %{result | name: approval.name, content: Hidden.visible(result.content)}
  end

  defp by(%Context{client: nil, profile: profile}), do: by(profile.id, "")
  defp by(%Context{client: client, profile: profile}), do: by(profile.id, " #{client}")

  defp by(id, client),
    do: "#{if id == "", do: "trusted code", else: id}, by the MCP client#{client}"

  # The question

  # Every value is a line of its own and in JSON, so that no value looks like another one.
  defp question(name, flags, line) do
    %{
      "message" => "Run #{External.line(name, 200)}?" <> values(flags, line),
      "requestedSchema" => %{"type" => "object", "properties" => %{}}
    }
  end

  defp values(flags, line) when flags == %{}, do: "\n" <> shown(line)

  defp values(flags, _line) do
    {first, rest} = flags |> Enum.sort() |> Enum.split(@max_values)
    lines = for {flag, value} <- first, do: "\n#{shown(flag)}: #{shown(JSON.encode(value))}"
    more = if rest == [], do: "", else: "\nand #{length(rest)} more values"
    Enum.join(lines) <> more
  end

  defp shown(text) do
    {shown, rest} = String.split_at(text, @max_value)
    more = if rest == "", do: "", else: " … (#{String.length(rest)} more characters)"
    Hidden.visible(shown) <> more
  end
end

defmodule Skillbook.Result do
  @moduledoc """
  The result of one command.

  A handler returns it with `:content`, `:data`, `:effects` and `:metadata`; `Skillbook.run/3`
  sets the other fields.

  ## Fields

    * `:status` - one of
      * `:ok`
      * `:error`
      * `:template` - the content is instructions for the model to follow; or, with `:external`,
        the text of a page of low trust, which a report shows as data
      * `:help` - the content is the answer to `get_skill` or `--help`
      * `:skipped` - the command did not run because an earlier one failed
      * `:pending` - the command, or one that it called, waits for an approval
    * `:content` - the text for the model
    * `:data` - the same as a term, for Elixir callers and tests; for a command that waits, its
      `Skillbook.Approval`
    * `:name` - the name of the skill that was called, or `nil`
    * `:command` - the command as the model wrote it, or `nil`
    * `:error` - the exception of an `:error`, or `nil`
    * `:duration` - the run time in microseconds, without the wait for the answer to `:ask`
    * `:effects` - the changes that the command made, a list of atoms such as `:task_created`
    * `:metadata` - a map for other values of the handler. These keys have a meaning:
      * `:activates` - the entries whose full texts the content holds (`:help`, `:template`): maps
        with a `:name`, and the first 16 hexadecimal digits of the text's SHA-256 as `:hash`
      * `:external` - `true` if the content has texts from outside, such as mails, documents and
        pages of low trust
      * `:media` - images, sounds and files beside the text, for the models of agents and clients
        of MCP: a list of maps with the bytes as `:data` and their type as `:type`, such as
        `"image/png"`, of at most 8 MiB together. With a `:uri` it is a file
      * `:parts` - the same for entries of which the content holds a part, or a file
      * `:hand_over` - the profile that leads the conversation from now on, as
        `Skillbook.Agent.hand_over/3` returns it
      * `:pending` - for `:pending`, a list of the `Skillbook.Approval`s that wait
      * `:cut` - the range of a truncated content, as described in
        [running commands](docs/running.md)
  """

  @type t :: %__MODULE__{
          status: :ok | :error | :template | :help | :skipped | :pending,
          content: String.t(),
          data: term(),
          name: String.t() | nil,
          command: String.t() | nil,
          error: Exception.t() | nil,
          duration: non_neg_integer() | nil,
          effects: [atom()],
          metadata: map()
        }

  @enforce_keys [:status, :content]
  defstruct [
    :status,
    :content,
    :data,
    :name,
    :command,
    :error,
    :duration,
    effects: [],
    metadata: %{}
  ]

  @doc """
  Returns a successful result.

  ## Options

    * `:data`, `:effects`, `:metadata` - the fields of the same names

  ## Examples

      iex> result = Skillbook.Result.ok("Saved as M-1.", data: 1, effects: [:memory_saved])
      iex> {result.status, result.content, result.data}
      {:ok, "Saved as M-1.", 1}
  """
  @spec ok(String.t(), keyword()) :: t()
  def ok(content, opts \\ []) when is_binary(content) do
    struct!(%__MODULE__{status: :ok, content: content}, opts)
  end

  @doc """
  Returns a failed result. The message of the exception becomes the content.

  ## Examples

      iex> result = Skillbook.Result.error(%ArgumentError{message: "no such task"})
      iex> {result.status, result.content}
      {:error, "no such task"}
  """
  @spec error(Exception.t()) :: t()
  def error(exception) when is_exception(exception) do
    %__MODULE__{status: :error, content: Exception.message(exception), error: exception}
  end

  @doc false
  # The result of a command that waits for an approval.
  @spec pending(Skillbook.Approval.t()) :: t()
  def pending(approval) do
    until = Calendar.strftime(approval.expires_at, "%Y-%m-%d %H:%M UTC")

    content =
      "`#{approval.name}` has not run yet: it waits for the approval #{approval.ref}, until " <>
        "#{until}. Do not call it again; tell the user that it waits."

    %__MODULE__{
      status: :pending,
      content: content,
      data: approval,
      metadata: %{pending: [approval]}
    }
  end
end

defmodule Skillbook.Handlers.HubSpot.Object do
  @moduledoc false
  # The kinds of records that the commands know: their names, the properties behind flags, and the
  # properties that answers show.

  alias Skillbook.FlagError
  alias Skillbook.Handlers.HubSpot.Text

  @type t :: %__MODULE__{
          one: String.t(),
          many: String.t(),
          flags: [{String.t(), String.t(), atom()}],
          title: [String.t()],
          line: [String.t()],
          more: [String.t()],
          body: String.t() | nil,
          sort: String.t(),
          pipeline: {String.t(), String.t()} | nil
        }

  # `flags`: {flag, property, form of the value}. `title` names a record, `line` follows it in
  # lists, `more` and `body` are shown only for a record alone. `pipeline`: the properties with
  # the ids of its pipeline and its stage.
  defstruct [:one, :many, :flags, :title, :line, :more, :body, :sort, :pipeline]

  @objects [
    %{
      one: "contact",
      many: "contacts",
      flags: [
        {"email", "email", :text},
        {"firstname", "firstname", :text},
        {"lastname", "lastname", :text},
        {"phone", "phone", :text},
        {"company", "company", :text},
        {"jobtitle", "jobtitle", :text}
      ],
      title: ~w(firstname lastname),
      line: ~w(email company jobtitle phone),
      more: ~w(mobilephone lifecyclestage hs_lead_status address city zip country website
           hubspot_owner_id createdate lastmodifieddate),
      body: nil,
      sort: "-lastmodifieddate"
    },
    %{
      one: "company",
      many: "companies",
      flags: [
        {"name", "name", :text},
        {"domain", "domain", :text},
        {"phone", "phone", :text},
        {"city", "city", :text},
        {"country", "country", :text}
      ],
      title: ["name"],
      line: ~w(domain industry city country phone),
      more: ~w(address zip website numberofemployees annualrevenue lifecyclestage description
           hubspot_owner_id createdate hs_lastmodifieddate),
      body: nil,
      sort: "-hs_lastmodifieddate"
    },
    %{
      one: "deal",
      many: "deals",
      flags: [
        {"name", "dealname", :text},
        {"amount", "amount", :number},
        {"close", "closedate", :day}
      ],
      title: ["dealname"],
      line: ~w(amount pipeline dealstage closedate),
      more: ~w(dealtype description hubspot_owner_id createdate hs_lastmodifieddate),
      body: nil,
      sort: "-hs_lastmodifieddate",
      pipeline: {"pipeline", "dealstage"}
    },
    %{
      one: "ticket",
      many: "tickets",
      flags: [
        {"title", "subject", :text},
        {"body", "content", :text},
        {"priority", "hs_ticket_priority", :upper}
      ],
      title: ["subject"],
      line: ~w(hs_pipeline hs_pipeline_stage hs_ticket_priority),
      more: ~w(hs_ticket_category source_type hubspot_owner_id createdate hs_lastmodifieddate),
      body: "content",
      sort: "-hs_lastmodifieddate",
      pipeline: {"hs_pipeline", "hs_pipeline_stage"}
    },
    %{
      one: "note",
      many: "notes",
      flags: [{"body", "hs_note_body", :html}, {"time", "hs_timestamp", :time}],
      title: ["hs_note_body"],
      line: ["hs_timestamp"],
      more: ~w(hubspot_owner_id hs_createdate hs_lastmodifieddate),
      body: "hs_note_body",
      sort: "-hs_timestamp"
    },
    %{
      one: "task",
      many: "tasks",
      flags: [
        {"title", "hs_task_subject", :text},
        {"body", "hs_task_body", :html},
        {"due", "hs_timestamp", :day},
        {"status", "hs_task_status", :upper},
        {"priority", "hs_task_priority", :upper},
        {"type", "hs_task_type", :upper}
      ],
      title: ["hs_task_subject"],
      line: ~w(hs_timestamp hs_task_status hs_task_priority),
      more: ~w(hs_task_type hubspot_owner_id hs_createdate hs_lastmodifieddate),
      body: "hs_task_body",
      sort: "hs_timestamp"
    },
    %{
      one: "call",
      many: "calls",
      flags: [
        {"title", "hs_call_title", :text},
        {"body", "hs_call_body", :html},
        {"time", "hs_timestamp", :time},
        {"minutes", "hs_call_duration", :minutes},
        {"direction", "hs_call_direction", :upper},
        {"status", "hs_call_status", :upper}
      ],
      title: ["hs_call_title"],
      line: ~w(hs_timestamp hs_call_direction hs_call_status),
      more: ~w(hs_call_duration hs_call_from_number hs_call_to_number hs_call_disposition
           hubspot_owner_id hs_createdate hs_lastmodifieddate),
      body: "hs_call_body",
      sort: "-hs_timestamp"
    },
    %{
      one: "meeting",
      many: "meetings",
      # HubSpot wants the beginning in both properties.
      flags: [
        {"title", "hs_meeting_title", :text},
        {"body", "hs_meeting_body", :html},
        {"start", "hs_meeting_start_time", :time},
        {"start", "hs_timestamp", :time},
        {"end", "hs_meeting_end_time", :time},
        {"location", "hs_meeting_location", :text},
        {"outcome", "hs_meeting_outcome", :upper}
      ],
      title: ["hs_meeting_title"],
      line: ~w(hs_meeting_start_time hs_meeting_end_time hs_meeting_outcome),
      more: ~w(hs_meeting_location hs_internal_meeting_notes hs_meeting_external_url
           hubspot_owner_id hs_createdate hs_lastmodifieddate),
      body: "hs_meeting_body",
      sort: "-hs_timestamp"
    }
  ]

  @effects for %{one: one} <- @objects,
               verb <- [:created, :updated],
               into: %{},
               do: {{one, verb}, :"#{one}_#{verb}"}

  @doc "The name of the effect of a command on a record."
  @spec effect(t(), :created | :updated) :: atom()
  def effect(object, verb), do: Map.fetch!(@effects, {object.one, verb})

  @doc "The kind of records of a name in the singular or the plural."
  @spec fetch!(String.t()) :: t()
  def fetch!(name),
    do: struct!(__MODULE__, Enum.find(@objects, &(name in [&1.one, &1.many])))

  @doc """
  The kind that a command is about, by the last word of its page's name: `hubspot.contacts`,
  `hubspot.create_contact`.
  """
  @spec of(Skillbook.Context.t()) :: {:ok, t()} | {:error, String.t()}
  def of(context) do
    word = context.entry.name |> String.split([".", "_", "-"]) |> List.last()

    case Enum.find(@objects, &(word in [&1.one, &1.many])) do
      nil ->
        {:error, "the last word of the page's name must be one of: #{Enum.join(names(), ", ")}"}

      fields ->
        {:ok, struct!(__MODULE__, fields)}
    end
  end

  @doc "Checks ids of records, or the address of a contact, which stand in paths of requests."
  @spec ids(t(), [String.t()]) :: :ok | {:error, FlagError.t()}
  def ids(object, ids) do
    case Enum.find(ids, &(not id?(object, &1))) do
      nil ->
        :ok

      wrong ->
        more = if object.one == "contact", do: ", or an e-mail address", else: ""
        FlagError.invalid("id", wrong, "an id, a number as answers show it#{more}", "101")
    end
  end

  defp id?(_object, id) when byte_size(id) > 254, do: false

  defp id?(object, id) do
    id =~ ~r/\A[1-9]\d{0,19}\z/ or
      (object.one == "contact" and id =~ ~r/\A[^\s@\/\\?#]+@[^\s@\/\\?#]+\z/)
  end

  @doc "The names of all kinds, in the singular."
  @spec names() :: [String.t()]
  def names, do: Enum.map(@objects, & &1.one)

  @doc "The properties that an answer about one record, or a list of them, shows."
  @spec shown(t(), :one | :list) :: [String.t()]
  def shown(object, :list), do: object.title ++ object.line

  def shown(object, :one),
    do: Enum.uniq(shown(object, :list) ++ object.more ++ List.wrap(object.body))

  @doc "The properties that the flags of a call set, as HubSpot takes their values."
  @spec properties(t(), map()) :: %{String.t() => String.t()}
  def properties(object, flags) do
    for {flag, property, form} <- object.flags, Map.has_key?(flags, flag), into: %{} do
      {property, value(form, flags[flag])}
    end
  end

  defp value(:text, text), do: text
  defp value(:html, text), do: Text.html(text)
  defp value(:upper, word), do: String.upcase(word)
  defp value(:time, time), do: DateTime.to_iso8601(time)
  # A day has no time zone there; noon is the same day in nearly all of them.
  defp value(:day, date), do: Date.to_iso8601(date) <> "T12:00:00Z"

  defp value(:minutes, minutes), do: to_string(round(minutes * 60_000))

  defp value(:number, number) do
    if number == trunc(number),
      do: to_string(trunc(number)),
      else: :erlang.float_to_binary(number, [:short])
  end

  # The ids of associations without a label, which HubSpot defines:
  # https://developers.hubspot.com/docs/api/crm/associations#association-type-id-values
  @types %{
    {"contact", "contact"} => 449,
    {"contact", "company"} => 279,
    {"contact", "deal"} => 4,
    {"contact", "ticket"} => 15,
    {"contact", "note"} => 201,
    {"contact", "task"} => 203,
    {"contact", "call"} => 193,
    {"contact", "meeting"} => 199,
    {"company", "contact"} => 280,
    {"company", "company"} => 450,
    {"company", "deal"} => 342,
    {"company", "ticket"} => 340,
    {"company", "note"} => 189,
    {"company", "task"} => 191,
    {"company", "call"} => 181,
    {"company", "meeting"} => 187,
    {"deal", "contact"} => 3,
    {"deal", "company"} => 341,
    {"deal", "deal"} => 451,
    {"deal", "ticket"} => 27,
    {"deal", "note"} => 213,
    {"deal", "task"} => 215,
    {"deal", "call"} => 205,
    {"deal", "meeting"} => 211,
    {"ticket", "contact"} => 16,
    {"ticket", "company"} => 339,
    {"ticket", "deal"} => 28,
    {"ticket", "note"} => 227,
    {"ticket", "task"} => 229,
    {"ticket", "call"} => 219,
    {"ticket", "meeting"} => 225,
    {"note", "contact"} => 202,
    {"note", "company"} => 190,
    {"note", "deal"} => 214,
    {"note", "ticket"} => 228,
    {"task", "contact"} => 204,
    {"task", "company"} => 192,
    {"task", "deal"} => 216,
    {"task", "ticket"} => 230,
    {"call", "contact"} => 194,
    {"call", "company"} => 182,
    {"call", "deal"} => 206,
    {"call", "ticket"} => 220,
    {"meeting", "contact"} => 200,
    {"meeting", "company"} => 188,
    {"meeting", "deal"} => 212,
    {"meeting", "ticket"} => 226
  }

  @doc "The id of the association between two kinds of records, or `nil` if there is none."
  @spec association(t(), t()) :: pos_integer() | nil
  def association(from, to), do: @types[{from.one, to.one}]

  @doc "The kinds of records that one can be associated with, in the singular."
  @spec associated(t()) :: [String.t()]
  def associated(from), do: for(name <- names(), @types[{from.one, name}] != nil, do: name)
end

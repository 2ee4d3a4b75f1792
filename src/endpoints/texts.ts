import { exactJsonText, parseExactJson } from '../core/exact-json.ts'
import { isJsonObject } from '../core/json.ts'
import { fieldPath } from './schema.ts'

/**
 * Kind of a text: something said, reasoning, the arguments of a tool call as JSON text, or the transcript of audio. `parameter` is
 * every other string of a request, such as `user`, a stop sequence, a URL or a string of an unknown member.
 */
export type TextKind = 'text' | 'reasoning' | 'tool_arguments' | 'transcript' | 'parameter'

/** Author of a text of a request. */
export type TextRole = 'system' | 'user' | 'assistant' | 'tool'

/** One text of a request or of an answer. */
export interface TextPart {
  /** Path as in errors: `messages[0].content[1].text`. Unique within a body. */
  readonly id: string
  readonly kind: TextKind
  /** Number of its message, choice, block or item. */
  readonly index: number
  /** The text. JSON for `tool_arguments`. */
  readonly text: string
  /** Author of a text of a request, if the endpoint knows it. */
  readonly role?: TextRole | undefined
  /** Path of the value, step by step. For `tool_arguments` the value may be the parsed JSON. */
  readonly path: readonly (string | number)[]
}

/** Where the texts of an endpoint's requests and answers are. Hooks use it to read and replace texts. */
export interface EndpointTexts<Request = { readonly model: string }> {
  /** Returns all strings that a vendor may read as text. The conversation comes last, in order. See `requestTexts`. */
  request(request: Request): readonly TextPart[]
  /** Replaces texts in a request whose body is not JSON, such as a form. If omitted, bodies are JSON. */
  replace?(request: Request, texts: ReadonlyMap<string, string>): Request
  /** Returns the JSON schema that the answer must match, if any. If omitted, requests cannot name one. */
  jsonSchema?(request: Request): unknown
  /** Absent if answers have no text: vectors, images, audio, receipts of tasks. */
  readonly answer?: AnswerTexts
}

/** An answer as an object. */
export type AnswerObject = Record<string, unknown>

/** Texts of whole and of streamed answers. A text has the same id in both. */
export interface AnswerTexts {
  /** All texts of a whole answer, in order. */
  whole(answer: AnswerObject): readonly TextPart[]
  /** Called after texts were replaced. Removes other forms of them, such as probabilities of tokens. */
  replaced?(answer: AnswerObject): void
  /** Returns the answer as a refusal in the dialect: without texts of the model, with its usage. */
  refusal(answer: AnswerObject, message: string): AnswerObject
  /**
   * Returns an answer with only this text: an object, or with `isStream` its events. Token counts are 0. If omitted, an answer
   * cannot consist of text.
   */
  said?(text: string, facts: SaidFacts): AnswerObject | string
  /** Reads one stream of events. */
  stream(): TextStreamReader
}

/** Facts about a request that is answered with a given text. */
export interface SaidFacts {
  /** The checked request, as the caller wrote it. */
  readonly request: { readonly model: string }
  /** Public model id. */
  readonly model: string
  /** Unix milliseconds. */
  readonly nowMs: number
  /** Value that makes the id of the answer unique. */
  readonly seed: string
  readonly isStream: boolean
}

/** Texts of the answer in one event of a stream. */
export interface TextStep {
  /** Texts that begin or continue here. `text` is the added part, and `path` is in the event. */
  readonly added: readonly TextPart[]
  /** Texts that the event repeats as a whole. */
  readonly repeated: readonly TextPart[]
  /** Prefixes of the ids of texts that end with or before this event. `''` for all texts. */
  readonly ended: readonly string[]
  /** Whether the event contains only one added text, so that it may be dropped, or sent twice with other texts. */
  readonly isBare: boolean
}

/** Reads the events of one streamed answer in order. */
export interface TextStreamReader {
  read(event: AnswerObject): TextStep
  /** Returns an event that only continues a text of this event. */
  more(event: AnswerObject, part: TextPart, text: string): AnswerObject
  /** Removes other forms of replaced texts from one event; see {@link AnswerTexts.replaced}. */
  replaced?(event: AnswerObject): void
  /** Numbers an event again, if the dialect numbers events. Returns whether its number changed. */
  numbered?(event: AnswerObject): boolean
  /**
   * Removes texts in forms that the dialect does not have from an event before it is sent. Returns whether it changed. Plain events
   * have no such forms.
   */
  mended?(event: AnswerObject): boolean
  /** Whether texts are repeated as a whole after their parts. Default false. */
  readonly repeats?: boolean
  /**
   * Set if each bare event can be read separately. An event that differs from another only in its text and in these padding members
   * is then the same step with another text, and `read` and `sent` are not called for it. By default, they are called for all.
   */
  readonly plain?: { readonly padding: readonly string[] }
  /** False if clients of the dialect do not yet accept any event other than the first. By default, they accept any. */
  readonly hasBegun?: boolean
  /** Called for every event that the caller gets. */
  sent(event: AnswerObject): void
  /** Returns the events that end the stream as a refusal, after those sent so far. */
  refusal(message: string): string
}

/** An event without text. */
export const NO_TEXT: TextStep = { added: [], repeated: [], ended: [], isBare: false }

/** Returns the kind of a string by the name of its member and the object around it, or `undefined` if it is not text. */
export type KindOf = (name: string, owner: Readonly<Record<string, unknown>>) => TextKind | undefined

/** Creates a function that returns the kind of a string by the name of its member alone. */
export function kindsByName(names: Readonly<Partial<Record<TextKind, readonly string[]>>>): KindOf {
  const kinds = new Map(
    Object.entries(names).flatMap(([kind, members]) => members.map((name) => [name, kind as TextKind] as const)),
  )
  return (name) => kinds.get(name)
}

/** Returns all texts inside a value. `path` is the path of the value. */
export function textsIn(
  value: unknown,
  path: readonly (string | number)[],
  { kindOf, index, role }: { readonly kindOf: KindOf; readonly index: number; readonly role?: TextRole | undefined },
): TextPart[] {
  const parts: TextPart[] = []
  const add = (kind: TextKind, text: string, at: readonly (string | number)[]): void => {
    if (text !== '') parts.push({ id: fieldPath(at), kind, index, text, path: at, ...(role && { role }) })
  }
  const walk = (member: unknown, at: readonly (string | number)[], kind: TextKind | undefined): void => {
    if (typeof member === 'string') {
      if (kind !== undefined) add(kind, member, at)
    } else if (Array.isArray(member)) {
      for (const [position, entry] of member.entries()) walk(entry, [...at, position], kind)
    } else if (isJsonObject(member)) {
      // Arguments written as an object become JSON text, as in streams.
      if (kind === 'tool_arguments') {
        if (Object.keys(member).length > 0) add(kind, exactJsonText(member), at)
        return
      }
      for (const name of Object.keys(member)) walk(member[name], [...at, name], kindOf(name, member))
    }
  }
  walk(value, path, kindOf(String(path.at(-1)), {}))
  return parts
}

/**
 * Returns the value with replaced texts. Unchanged parts are shared.
 * @throws SyntaxError if a text for a JSON value is not JSON.
 */
export function withTexts<Value>(value: Value, parts: readonly TextPart[], texts: ReadonlyMap<string, string>): Value {
  let changed: unknown = value
  const copied = new Set<object>()
  for (const part of parts) {
    const text = texts.get(part.id)
    if (text !== undefined && text !== part.text) changed = withText(changed, part.path, text, copied)
  }
  return changed as Value
}

function withText(value: unknown, path: readonly (string | number)[], text: string, copied: Set<object>): unknown {
  const [step, ...rest] = path
  if (step === undefined) return typeof value === 'string' ? text : jsonValue(text)
  if (typeof value !== 'object' || value === null) return value
  const copy = copied.has(value) ? value : Array.isArray(value) ? [...value] : { ...value }
  copied.add(copy)
  const members = copy as Record<string | number, unknown>
  members[step] = withText(members[step], rest, text, copied)
  return copy
}

/** @throws SyntaxError if the text is not JSON. */
function jsonValue(text: string): unknown {
  return parseExactJson(text) ?? (JSON.parse(text) as unknown)
}

/** Writes a text at a path of an event, in place. */
export function setText(event: AnswerObject, path: readonly (string | number)[], text: string): void {
  let owner: unknown = event
  for (let index = 0; index < path.length - 1; index++)
    owner = (owner as Record<string | number, unknown>)[path[index]!]
  const members = owner as Record<string | number, unknown>
  const last = path[path.length - 1]!
  members[last] = typeof members[last] === 'string' ? text : jsonValue(text)
}

/** How an endpoint reads the strings of its requests. Members that it does not name are parameters. */
export interface RequestPlaces {
  /** Kinds of strings, and of lists of strings, at the top of the body. The rest are parameters. */
  readonly kinds?: Readonly<Record<string, TextKind>>
  /** Kinds of strings inside of lists and objects. */
  readonly kindOf?: KindOf
  /** Members that hold the conversation. Hooks see them after all others, in this order. */
  readonly last?: readonly string[]
  /** Members in which callers choose the names, such as documents. No string in them is left out by its name. */
  readonly open?: readonly string[]
  /** Members that the vendor never gets. */
  readonly unsent?: readonly string[]
  /** Returns the author of the strings of an entry of a member, or of the whole member unless it is a list. */
  roleOf?(member: string, entry: unknown): TextRole | undefined
}

type Owner = Readonly<Record<string, unknown>>

/** Whose names members have: the API's, a JSON schema's or the caller's. */
type Naming = 'api' | 'schema' | 'caller'

/** Names with an id or one of a few values. Such a string is left out if it matches {@link LITERAL}. */
const LITERALS: ReadonlySet<string> = new Set(
  `model models type role object status phase detail format media_type mime_type voice language languages size quality
  style background moderation response_format output_format encoding_format stream_format service_tier reasoning_effort effort
  verbosity truncation tool_choice mode modalities include timestamp_granularities aspect_ratio resolution ttl id
  previous_response_id previous_interaction_id file_id conversation container betas search_context_size server_label
  allowed_callers caller display return_format syntax inference_geo speed prompt_cache_retention`.split(/\s+/),
)
const LITERAL = /^[\w.:/-]{1,256}$/
const ID_NAME = /^id$|_ids?$/

/** Names with bytes in base64, or with state that a vendor has encrypted or signed. */
const ENCODED: ReadonlySet<string> = new Set(
  `data b64_json file_data image_data bytes signature thought_signature encrypted_content encrypted_index
  encrypted_stdout`.split(/\s+/),
)
const NOT_ENCODED = /[^\w+/=:.-]/
const DATA_URL = /^data:[\w.+/-]{1,128}(?:;[\w.=+-]{1,128}){0,8},/

/** Names of JSON Schema whose strings are compared, not read. */
const COMPARED: ReadonlySet<string> = new Set(
  '$ref $id $schema $anchor $dynamicRef $dynamicAnchor type format pattern enum const required'.split(' '),
)
const SCHEMAS: ReadonlySet<string> = new Set(['parameters', 'input_schema', 'output_schema', 'schema'])

/** Members that list tools, and names in them with credentials for the tools' servers. */
const TOOLS: ReadonlySet<string> = new Set(['tools', 'mcp_servers'])
const CREDENTIALS: ReadonlySet<string> = new Set(['headers', 'authorization', 'authorization_token'])

/**
 * Returns every string of a request that a vendor may read, in one pass. Excludes names of members, ids, literals of the API,
 * values that a JSON schema compares, bytes and encrypted state, credentials of tools and the address of a webhook.
 */
export function requestTexts(request: object, places: RequestPlaces): readonly TextPart[] {
  const { last = [], unsent = [] } = places
  const names = Object.keys(request).filter((name) => !last.includes(name) && !unsent.includes(name))
  const walk = new TextWalk(places)
  for (const name of [...names, ...last]) walk.member(name, (request as Owner)[name])
  return walk.texts
}

/** Texts of a request in JSON whose answer has none. Their author is the user unless the places name another. */
export function promptTexts(places: RequestPlaces): { request(request: object): readonly TextPart[] } {
  const all: RequestPlaces = { roleOf: () => 'user', ...places }
  return { request: (request) => requestTexts(request, all) }
}

/** Step of a path. Paths of all texts together may be much longer than the request, so each is built when it is read. */
interface Place {
  readonly above: Place | undefined
  readonly step: string | number
  readonly id: string
}

class PlacedText implements TextPart {
  readonly id: string
  readonly kind: TextKind
  readonly index: number
  readonly text: string
  readonly role?: TextRole
  readonly #place: Place

  constructor(place: Place, kind: TextKind, text: string, { index, role }: Pick<TextPart, 'index' | 'role'>) {
    this.id = place.id
    this.kind = kind
    this.index = index
    this.text = text
    if (role !== undefined) this.role = role
    this.#place = place
  }

  get path(): readonly (string | number)[] {
    const steps: (string | number)[] = []
    for (let place: Place | undefined = this.#place; place !== undefined; place = place.above) steps.push(place.step)
    return steps.reverse()
  }
}

class TextWalk {
  readonly texts: TextPart[] = []
  readonly #places: RequestPlaces
  #of: Pick<TextPart, 'index' | 'role'> = { index: 0 }
  #isOfTools = false

  constructor(places: RequestPlaces) {
    this.#places = places
  }

  member(name: string, value: unknown): void {
    if (name === 'webhook_url') return
    const { kinds, open, roleOf } = this.#places
    const place = { above: undefined, step: name, id: name }
    const naming = name === 'metadata' || open?.includes(name) === true ? 'caller' : 'api'
    this.#isOfTools = TOOLS.has(name)
    const kind = kinds?.[name]
    if (!Array.isArray(value)) {
      this.#of = { index: 0, role: roleOf?.(name, value) }
      this.#walk(value, place, { name, kind, naming, owner: undefined })
      return
    }
    for (const [index, entry] of value.entries()) {
      if (!canHaveText(entry)) continue
      this.#of = { index, role: roleOf?.(name, entry) }
      this.#walk(entry, below(place, index), { name, kind, naming, owner: undefined })
    }
  }

  #walk(value: unknown, place: Place, said: Said): void {
    if (typeof value === 'string') {
      if (value !== '' && (said.kind !== undefined || !isLeftOut(value, said))) this.#add(place, said.kind, value)
    } else if (Array.isArray(value)) {
      for (const [index, entry] of value.entries()) if (canHaveText(entry)) this.#walk(entry, below(place, index), said)
    } else if (isJsonObject(value)) {
      // Arguments that are written as an object are the JSON text of it, as they are in streams.
      if (said.kind !== 'tool_arguments') this.#members(value, place, said.naming)
      else if (Object.keys(value).length > 0) this.#add(place, said.kind, JSON.stringify(value))
    }
  }

  #members(owner: Owner, place: Place, naming: Naming): void {
    for (const name of Object.keys(owner)) {
      if (!canHaveText(owner[name])) continue
      if (this.#isOfTools && naming === 'api' && CREDENTIALS.has(name)) continue
      const kind = naming === 'schema' && !DESCRIBES.has(name) ? undefined : this.#places.kindOf?.(name, owner)
      const within = naming !== 'api' ? naming : name === 'metadata' ? 'caller' : SCHEMAS.has(name) ? 'schema' : 'api'
      this.#walk(owner[name], below(place, name), { name, kind, naming: within, owner })
    }
  }

  #add(place: Place, kind: TextKind = 'parameter', text: string): void {
    this.texts.push(new PlacedText(place, kind, text, this.#of))
  }
}

const DESCRIBES: ReadonlySet<string> = new Set(['description', 'title'])

/** Facts about a value from the member that holds it. */
interface Said {
  readonly name: string
  readonly kind: TextKind | undefined
  readonly naming: Naming
  /** Object of the member; undefined at the top of the body. */
  readonly owner: Owner | undefined
}

/** Whether a value is or may contain a text. Lists of token ids have hundreds of thousands of values without one. */
function canHaveText(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

function below(above: Place, step: string | number): Place {
  return { above, step, id: typeof step === 'number' ? `${above.id}[${step}]` : `${above.id}.${step}` }
}

function isLeftOut(text: string, { name, naming, owner }: Said): boolean {
  if (text.startsWith('data:')) {
    const head = DATA_URL.exec(text.slice(0, 2_048))?.[0]
    if (head?.endsWith(';base64,') && !NOT_ENCODED.test(text.slice(head.length))) return true
  }
  if (naming === 'caller') return false
  if (naming === 'schema') return COMPARED.has(name)
  if (ENCODED.has(name)) return !NOT_ENCODED.test(text)
  const isId = owner !== undefined && (ID_NAME.test(name) || (name === 'name' && owner['role'] === undefined))
  return (isId || LITERALS.has(name)) && LITERAL.test(text)
}

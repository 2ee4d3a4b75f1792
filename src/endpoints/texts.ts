import { exactJsonText, parseExactJson } from '../core/exact-json.ts'
import { isJsonObject } from '../core/json.ts'
import { fieldPath } from './request-field.ts'

/**
 * Kind of a text: something said, reasoning, the arguments of a tool call as JSON text, or the transcript of sound. `parameter` is every
 * other string of a request, such as `user`, a stop sequence, a URL or a string of an unknown member.
 */
export type TextKind = 'text' | 'reasoning' | 'tool_arguments' | 'transcript' | 'parameter'

/** Who wrote a text of a request. */
export type TextRole = 'system' | 'user' | 'assistant' | 'tool'

/** One text of a request or of an answer. */
export interface TextPart {
  /** Where it stands, as in errors: `messages[0].content[1].text`. No other text of the same body has it. */
  readonly id: string
  /** What kind of text it is. */
  readonly kind: TextKind
  /** Number of its message, choice, block or item. */
  readonly index: number
  /** For `tool_arguments` JSON text. */
  readonly text: string
  /** Of requests only, where the endpoint knows it. */
  readonly role?: TextRole | undefined
  /** The same place, step by step. The value there is the text, or for `tool_arguments` may be what the JSON text stands for. */
  readonly path: readonly (string | number)[]
}

/** Where the texts of an endpoint's requests and answers are. Hooks read and replace texts by it. */
export interface EndpointTexts<Request = { readonly model: string }> {
  /** All strings that a vendor may read as text; the conversation comes last, in order. See `requestTexts`. */
  request(request: Request): readonly TextPart[]
  /** A request whose body is no JSON, such as a form, with other texts. Absent: its bodies are JSON. */
  replace?(request: Request, texts: ReadonlyMap<string, string>): Request
  /** The JSON schema that a request wants its answer to match; undefined: none. Absent: requests can name none. */
  jsonSchema?(request: Request): unknown
  /**
   * The JSON body of the same request, continued by an answer and by a reply to it. Undefined: this one cannot be continued so.
   * Absent: requests have no turns.
   */
  continued?(body: AnswerObject, answer: string, reply: string): AnswerObject | undefined
  /** Absent where answers have no text: vectors, pictures, sound, receipts of tasks. */
  readonly answer?: AnswerTexts
}

/** An answer as an object. */
export type AnswerObject = Record<string, unknown>

/** Texts of whole and of streamed answers. A text has the same id in both. */
export interface AnswerTexts {
  /** All texts of a whole answer, in order. */
  whole(answer: AnswerObject): readonly TextPart[]
  /** Called after texts were replaced: takes out what repeats them in another form, such as probabilities of tokens. */
  replaced?(answer: AnswerObject): void
  /** The same answer as a refusal in the dialect: without texts of the model, with its usage. */
  refusal(answer: AnswerObject, message: string): AnswerObject
  /**
   * An answer that says only this, in the dialect: an object, or with `isStream` its events. Absent: a text is no answer.
   * Its counts of tokens are 0.
   */
  said?(text: string, facts: SaidFacts): AnswerObject | string
  /** Reads one stream of events. */
  stream(): TextStreamReader
}

/** What is known of a request that is answered with a text. */
export interface SaidFacts {
  /** The checked request, as its caller wrote it. */
  readonly request: { readonly model: string }
  /** Public id. */
  readonly model: string
  /** Unix milliseconds. */
  readonly nowMs: number
  /** Makes the id of the answer unique. */
  readonly seed: string
  readonly isStream: boolean
}

/** What one event of a stream says about the texts of the answer. */
export interface TextStep {
  /** Texts that begin or go on here: `text` is what is added, `path` is in the event. */
  readonly added: readonly TextPart[]
  /** Texts that the event repeats as a whole. */
  readonly repeated: readonly TextPart[]
  /** Beginnings of the ids of texts that end with this event, or before it; `''`: of all. */
  readonly ended: readonly string[]
  /** Is there nothing in the event but one added text, so that it may be left out, or sent twice with other texts? */
  readonly isBare: boolean
}

/** Reads the events of one streamed answer in order. */
export interface TextStreamReader {
  read(event: AnswerObject): TextStep
  /** An event with nothing but more of a text that this event has added to. */
  more(event: AnswerObject, part: TextPart, text: string): AnswerObject
  /** As {@link AnswerTexts.replaced}, for one event. */
  replaced?(event: AnswerObject): void
  /** Numbers an event once more, where the dialect counts them. True: it has another number now. */
  numbered?(event: AnswerObject): boolean
  /**
   * Takes out of an event that is about to be sent what says a text in another form than the dialect's. True: it is another one now.
   * Plain events have no such thing.
   */
  mended?(event: AnswerObject): boolean
  /** Are texts repeated as a whole after their parts? Absent: never. */
  readonly repeats?: boolean
  /**
   * Are bare events read each by itself? Then one that differs from another in nothing but its text, and in these members, which are
   * padding, is the same step with another text; the reader is not told of it, by `read` or `sent`. Absent: it is told of all.
   */
  readonly plain?: { readonly padding: readonly string[] }
  /** False while a client of the dialect takes no event but the first of the stream; absent: it takes any. */
  readonly hasBegun?: boolean
  /** Told of every event that the caller gets. */
  sent(event: AnswerObject): void
  /** The events that end the stream as a refusal, after what was sent so far. */
  refusal(message: string): string
}

/** An event without text. */
export const NO_TEXT: TextStep = { added: [], repeated: [], ended: [], isBare: false }

/** Says what a string is by the name of its member and the object around it; undefined: no text. */
export type KindOf = (name: string, owner: Readonly<Record<string, unknown>>) => TextKind | undefined

/** Says what strings are by the names of their members alone. */
export function kindsByName(names: Readonly<Partial<Record<TextKind, readonly string[]>>>): KindOf {
  const kinds = new Map(
    Object.entries(names).flatMap(([kind, members]) => members.map((name) => [name, kind as TextKind] as const)),
  )
  return (name) => kinds.get(name)
}

/** The texts of a value with everything inside it. `path` says where the value stands. */
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
      // Arguments that are written as an object are the JSON text of it, as they are in streams.
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
 * The same value with other texts; parts of it that do not change are shared.
 * @throws SyntaxError where a text stands for a JSON value and is not JSON.
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

/** Writes another text at a place of an event, in the event itself. */
export function setText(event: AnswerObject, path: readonly (string | number)[], text: string): void {
  let owner: unknown = event
  for (let index = 0; index < path.length - 1; index++)
    owner = (owner as Record<string | number, unknown>)[path[index]!]
  const members = owner as Record<string | number, unknown>
  const last = path[path.length - 1]!
  members[last] = typeof members[last] === 'string' ? text : jsonValue(text)
}

/** An answer and a reply to it, as turns of a conversation. */
export function turnsOf(answer: string, reply: string): readonly AnswerObject[] {
  return [
    { role: 'assistant', content: answer },
    { role: 'user', content: reply },
  ]
}

/** A request whose turns are `messages`, continued by an answer and a reply to it. */
export function withTurns(body: AnswerObject, answer: string, reply: string): AnswerObject | undefined {
  const { messages } = body
  return Array.isArray(messages) ? { ...body, messages: [...messages, ...turnsOf(answer, reply)] } : undefined
}

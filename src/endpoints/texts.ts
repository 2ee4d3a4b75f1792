import { exactJsonText, parseExactJson } from '../core/exact-json.ts'
import { isJsonObject } from '../core/json.ts'
import { fieldPath } from './request-field.ts'

/**
 * Kind of a text: something said, reasoning, the arguments of a tool call as JSON text, or the transcript of audio. `parameter` is
 * every other string of a request, such as `user`, a stop sequence, a URL or a string of an unknown member.
 */
export type TextKind = 'text' | 'reasoning' | 'tool_arguments' | 'transcript' | 'parameter'

/** Who wrote a text of a request. */
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
  /**
   * Returns the JSON body continued by an answer and a reply to it, or `undefined` if this request cannot be continued. If omitted,
   * requests have no turns.
   */
  continued?(body: AnswerObject, answer: string, reply: string): AnswerObject | undefined
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

/** Returns an answer and a reply to it as turns of a conversation. */
export function turnsOf(answer: string, reply: string): readonly AnswerObject[] {
  return [
    { role: 'assistant', content: answer },
    { role: 'user', content: reply },
  ]
}

/** Returns a request with `messages` continued by an answer and a reply to it. */
export function withTurns(body: AnswerObject, answer: string, reply: string): AnswerObject | undefined {
  const { messages } = body
  return Array.isArray(messages) ? { ...body, messages: [...messages, ...turnsOf(answer, reply)] } : undefined
}

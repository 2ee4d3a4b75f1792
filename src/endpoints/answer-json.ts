import { type ExactMembers, namesOf, parseExactJson } from '../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../core/json.ts'

/**
 * Maximum number of choices, output items, content blocks, tool calls and annotations together in one answer, or in one event of a stream. The work
 * on each is a multiple of the work to parse it. OpenAI accepts at most 128 choices and 128 parallel calls.
 */
export const MAX_ANSWER_ITEMS = 1_024

/** Members in which chat dialects nest the values counted by {@link MAX_ANSWER_ITEMS}. No token probability is below them. */
const NESTING = [
  'response',
  'choices',
  'candidates',
  'output',
  'item',
  'message',
  'delta',
  'content',
  'parts',
  'tool_calls',
  'summary',
  'annotations',
]

/** The shortest item has two characters with its comma, so a text of this length is within the limit. */
const ALWAYS_FITTING_LENGTH = 2 * MAX_ANSWER_ITEMS

/** Members in which the chat dialects send the arguments of a tool call as an object. */
const EXACT = {
  input: new Map([['input', 'text']]),
  args: new Map([['args', 'text']]),
  arguments: new Map([['arguments', 'text']]),
} satisfies Record<string, ExactMembers>

/** Member of a tool call in which a dialect sends its arguments. */
export type ArgumentsMember = keyof typeof EXACT

/**
 * Reads the JSON of a chat answer, or of one event of it.
 * @param argumentsMember Member whose numbers keep their text: arguments of tools belong to model and caller. If omitted, there is none.
 * @returns The value, or `undefined` if the text is not JSON or has more than {@link MAX_ANSWER_ITEMS}.
 */
export function parseAnswerJson(text: string, argumentsMember?: ArgumentsMember): unknown {
  const members: ExactMembers | undefined = argumentsMember && EXACT[argumentsMember]
  const isExact = members !== undefined && namesOf(members).test(text)
  const value = isExact ? parseExactJson(text, members) : parseVendorJson(text)
  return text.length <= ALWAYS_FITTING_LENGTH || itemsIn(value) <= MAX_ANSWER_ITEMS ? value : undefined
}

function itemsIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + itemsIn(item), value.length)
  return isJsonObject(value) ? NESTING.reduce((sum, name) => sum + itemsIn(value[name]), 0) : 0
}

/** A part of a multipart request. */
export interface CachedPart {
  readonly name: string
  readonly chunks: readonly Uint8Array[]
}

/**
 * How the answers of an endpoint are cached. Two requests are equal if all members of their bodies are equal byte for
 * byte, except the members declared here. Unknown members therefore keep requests apart.
 */
export interface CachedAnswers<Request, Offers> {
  /** Members of the body that do not decide the answer. */
  readonly leftOut: ReadonlySet<string>
  /** Returns the parts of a multipart request, which replace the members. If omitted, forms are not cached. */
  parts?(request: Request): readonly CachedPart[]
  /** Returns the part of the ignored members that still decides the form of the answer. If omitted, no part does. */
  form?(request: Request): string
  /** Request headers that decide a vendor's answer. If omitted, no header does. */
  headers?(vendor: Offers): readonly string[]
  /** Whether the request asks for a repeatable answer, as far as a request can. */
  isDeterministic(request: Request): boolean
  /** Whether the answer depends on more than the request, or the request has effects. */
  isExcluded(request: Request): boolean
  /** Byte sequences of answers that must not be cached. They include quotes, so text never contains them. */
  readonly refusals: readonly string[]
  /** Paths of the id in an answer or a stream event. If omitted, answers have no id. */
  readonly idPaths?: readonly (readonly string[])[]
  /** Text before the cost of the call in a streamed answer, if the dialect reports costs: `"cost":"`. */
  readonly costMark?: string
}

/** Answers that depend on all members of their request, and on nothing else. */
export const DETERMINISTIC_ANSWERS = {
  leftOut: new Set<string>(),
  isDeterministic: () => true,
  isExcluded: () => false,
  refusals: [],
  idPaths: [['id']],
} satisfies CachedAnswers<unknown, unknown>

/** Values of `service_tier` for which every request is served in the same way. */
const DEFAULT_TIERS: ReadonlySet<unknown> = new Set([undefined, null, 'auto', 'default'])

/** Whether a request names a service tier other than the ordinary one. */
export function hasOtherTier({ service_tier }: Readonly<Record<string, unknown>>): boolean {
  return !DEFAULT_TIERS.has(service_tier)
}

/** Whether the vendor runs one of these tools, according to its type. A tool without a type is run by the caller. */
export function hasHostedTool(tools: unknown, ofCallers: ReadonlySet<unknown>): boolean {
  return Array.isArray(tools) && tools.some((tool) => isJsonObject(tool) && !ofCallers.has(tool['type']))
}

/** Whether a value refers to a file stored at a vendor, at any depth. Text that mentions a file does not count. */
export function namesFile(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(namesFile)
  if (!isJsonObject(value)) return false
  if (typeof value['file_id'] === 'string') return true
  for (const name of Object.keys(value)) {
    const member = value[name]
    if (typeof member === 'object' && member !== null && namesFile(member)) return true
  }
  return false
}

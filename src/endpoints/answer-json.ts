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

/**
 * Reads the JSON of a chat answer, or of one event of it.
 * @param argumentsMember Member whose numbers keep their text: arguments of tools belong to model and caller. If omitted, there is none.
 * @returns The value, or `undefined` if the text is not JSON or has more than {@link MAX_ANSWER_ITEMS}.
 */
export function parseAnswerJson(text: string, argumentsMember?: keyof typeof EXACT): unknown {
  const members: ExactMembers | undefined = argumentsMember && EXACT[argumentsMember]
  const isExact = members !== undefined && namesOf(members).test(text)
  const value = isExact ? parseExactJson(text, members) : parseVendorJson(text)
  return text.length <= ALWAYS_FITTING_LENGTH || itemsIn(value) <= MAX_ANSWER_ITEMS ? value : undefined
}

function itemsIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + itemsIn(item), value.length)
  return isJsonObject(value) ? NESTING.reduce((sum, name) => sum + itemsIn(value[name]), 0) : 0
}

import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'

/** The tool call that a streamed chunk belongs to. */
export interface LocatedPiece {
  /** Counts tool calls from 0, in the order of opening. */
  readonly index: number
  /** Is this the first chunk of its call? */
  readonly opens: boolean
  /** The call's id; made up when the vendor gave none. */
  readonly id: string
  readonly name: string
}

interface OpenCall {
  readonly index: number
  readonly id: string
  readonly name: string
}

/** The arguments of a call as JSON text. Some servers give the object itself. */
export function argumentsText(given: unknown): string {
  return isJsonObject(given) ? exactJsonText(given) : textOf(given)
}

/** What makes invented ids of calls unique: the answer's own id, or the time of its call where it has none. */
export function answerMark(id: unknown, nowMs: number): string {
  return typeof id === 'string' && id !== '' ? id : nowMs.toString(36)
}

/** Of ids the end is random. Some vendors take ids of calls up to 40 characters. */
const MARK_LENGTH = 24

/** The id of a call that has none. */
export function inventedCallId(answerId: string, index: number): string {
  return `call_${answerId.slice(-MARK_LENGTH)}_${index}`
}

/**
 * Tells which call each piece of streamed tool calls belongs to, for servers whose ids are empty or repeated and whose
 * indexes are missing, reused or do not begin at 0. The rules, in order:
 * a known id continues its call; a new id opens one; without an id, the call last opened under the same index goes on,
 * unless the piece names another function; without an index the last call goes on, unless the piece names a function.
 */
export class StreamedToolCalls {
  readonly #byId = new Map<string, OpenCall>()
  readonly #byVendorIndex = new Map<number, OpenCall>()
  #count = 0
  #last: OpenCall | undefined

  /** How many calls were opened. */
  get count(): number {
    return this.#count
  }

  /** Locates one element of `delta.tool_calls`. @param answerId Of {@link answerMark}. */
  locate(piece: Record<string, unknown>, answerId: string): LocatedPiece {
    const id = textOf(piece['id'])
    const name = isJsonObject(piece['function']) ? textOf(piece['function']['name']) : ''
    const vendorIndex = typeof piece['index'] === 'number' ? piece['index'] : undefined
    const known = this.#continued(id, name, vendorIndex)
    if (known !== undefined) {
      this.#last = known
      return { ...known, opens: false }
    }
    const index = this.#count++
    const opened: OpenCall = { index, id: id === '' ? inventedCallId(answerId, index) : id, name }
    this.#byId.set(opened.id, opened)
    if (vendorIndex !== undefined) this.#byVendorIndex.set(vendorIndex, opened)
    this.#last = opened
    return { ...opened, opens: true }
  }

  #continued(id: string, name: string, vendorIndex: number | undefined): OpenCall | undefined {
    if (id !== '') return this.#byId.get(id)
    if (vendorIndex === undefined) return name === '' ? this.#last : undefined
    const call = this.#byVendorIndex.get(vendorIndex)
    // An unknown index on a chunk without a name: the vendor miscounted, and the chunk can only belong to the last call.
    if (call === undefined) return name === '' ? this.#last : undefined
    return name === '' || name === call.name ? call : undefined
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

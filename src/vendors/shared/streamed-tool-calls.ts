import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectOf, textOf } from '../../core/json.ts'
import { JsonTextEnd } from '../../endpoints/chat/chat-stream-writer.ts'

/** The tool call that a streamed chunk belongs to. */
export interface LocatedPiece {
  /** Index of the tool call, from 0, in the order of their first chunks. */
  readonly index: number
  /** Whether this is the first chunk of its call with a name. */
  readonly opens: boolean
  /** The call's id, invented if the vendor sent none. */
  readonly id: string
  readonly name: string
  /** JSON text of the arguments in the chunk, after that of the chunks before the name. */
  readonly json: string
  /** The chunk, with the members of those before the name. */
  readonly piece: Record<string, unknown>
}

interface OpenCall {
  readonly index: number
  id: string
  hasOwnId: boolean
  /** Empty until the vendor has sent it. */
  name: string
  isOpen: boolean
  /** Arguments of the first chunk, and of all chunks of a call without an id. */
  readonly arguments: JsonTextEnd
  heldJson: string
  held: Record<string, unknown>
}

/** Returns the arguments of a call as JSON text. Some servers send the object itself. */
export function argumentsText(given: unknown): string {
  return isJsonObject(given) ? exactJsonText(given) : textOf(given)
}

/** Returns a mark that makes invented call ids unique: the answer's own id, or the time of its call without one. */
export function answerMark(id: unknown, nowMs: number): string {
  return typeof id === 'string' && id !== '' ? id : nowMs.toString(36)
}

/** The end of an id is random. Some vendors accept call ids of up to 40 characters. */
const MARK_LENGTH = 24

/** Returns the id of a call that has none. */
export function inventedCallId(answerId: string, index: number): string {
  return `call_${answerId.slice(-MARK_LENGTH)}_${index}`
}

/**
 * Finds the call of each chunk of streamed tool calls, for servers whose ids are empty, late or repeated and whose indexes are
 * missing, reused or do not begin at 0. In order: a known id continues its call; a chunk under the index of a call without a name
 * names it; an id without a name is that of the call at its index, if that has none or the chunk continues its arguments; another
 * id opens a call; without an id, the last call under the same index continues, unless the chunk names another function, or
 * arguments are complete and more arrive with the name; without an index the last call continues, unless the chunk names a
 * function.
 */
export class StreamedToolCalls {
  readonly #byId = new Map<string, OpenCall>()
  readonly #byVendorIndex = new Map<number, OpenCall>()
  #count = 0
  #last: OpenCall | undefined

  /** Number of opened calls. */
  get count(): number {
    return this.#count
  }

  /**
   * Locates one element of `delta.tool_calls`. Returns `undefined` for chunks before the name of their call, which are held until
   * it arrives. @param answerId Result of {@link answerMark}.
   */
  locate(piece: Record<string, unknown>, answerId: string): LocatedPiece | undefined {
    const id = textOf(piece['id']).trim() === '' ? '' : textOf(piece['id'])
    const called = objectOf(piece['function'])
    const name = textOf(called['name'])
    const json = argumentsText(called['arguments'])
    const vendorIndex = typeof piece['index'] === 'number' ? piece['index'] : undefined
    const call = this.#continued({ id, name, json, vendorIndex }) ?? this.#begun(id, vendorIndex, answerId)
    if (id !== '' && !call.hasOwnId && !call.isOpen) Object.assign(call, { id, hasOwnId: true })
    if (id !== '') this.#byId.set(id, call)
    this.#last = call
    if (call.isOpen && !call.hasOwnId) call.arguments.push(json)
    if (call.isOpen) return { ...call, opens: false, json, piece }
    call.heldJson += json
    call.held = { ...call.held, ...piece }
    // A call of another type has its name under another member.
    const isFunction = isJsonObject(piece['function']) || ['', 'function'].includes(textOf(piece['type']))
    if (name === '' && isFunction) return undefined
    call.name = name
    call.isOpen = true
    call.arguments.push(call.heldJson)
    return { ...call, opens: true, json: call.heldJson, piece: call.held }
  }

  #begun(id: string, vendorIndex: number | undefined, answerId: string): OpenCall {
    const index = this.#count++
    const call: OpenCall = {
      index,
      id: id === '' ? inventedCallId(answerId, index) : id,
      hasOwnId: id !== '',
      name: '',
      isOpen: false,
      arguments: new JsonTextEnd(),
      heldJson: '',
      held: {},
    }
    this.#byId.set(call.id, call)
    if (vendorIndex !== undefined) this.#byVendorIndex.set(vendorIndex, call)
    return call
  }

  #continued({ id, name, json, vendorIndex }: PieceMembers): OpenCall | undefined {
    const known = id === '' ? undefined : this.#byId.get(id)
    if (known !== undefined) return known
    const call = vendorIndex === undefined ? this.#last : this.#byVendorIndex.get(vendorIndex)
    if (id !== '') {
      const continues = call !== undefined && name === '' && (!call.hasOwnId || (call.isOpen && json !== ''))
      return continues ? call : undefined
    }
    // An unknown index on a chunk without a name: the vendor miscounted, and the chunk can only belong to the last call.
    if (call === undefined) return name === '' ? this.#last : undefined
    if (name === '' || !call.isOpen) return call
    if (vendorIndex === undefined || name !== call.name) return undefined
    return call.arguments.isWhole && json.trim() !== '' ? undefined : call
  }
}

interface PieceMembers {
  readonly id: string
  readonly name: string
  readonly json: string
  readonly vendorIndex: number | undefined
}

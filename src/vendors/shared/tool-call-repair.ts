import { isJsonObject } from '../../core/json.ts'
import { type LocatedPiece, StreamedToolCalls } from './streamed-tool-calls.ts'

/**
 * Gives streamed tool calls the members that clients assemble them by: `index` in every chunk; `id`, `type` and a name in the first
 * chunk of a call only. Chunks that already have this form stay unchanged.
 */
export class ToolCallRepair {
  #isNeeded: boolean
  readonly #byChoice = new Map<number, StreamedToolCalls>()

  /** @param isNeeded Whether the server's chunks may look complete and are not, such as with repeated indexes. */
  constructor(isNeeded = false) {
    this.#isNeeded = isNeeded
  }

  /** Whether chunks that only continue calls must be read. Chunks that open calls always are. */
  get readsCalls(): boolean {
    return this.#isNeeded
  }

  /** Whether a choice has called a tool in the chunks read so far. */
  hasCalls(choice: number): boolean {
    return this.#byChoice.has(choice)
  }

  /** Repairs the tool calls of a delta in place. Returns whether it changed. */
  mend(delta: Record<string, unknown>, choice: number, answerId: string): boolean {
    const given = delta['tool_calls']
    if (!Array.isArray(given) || given.length === 0) return false
    const calls = this.#byChoice.get(choice) ?? new StreamedToolCalls()
    this.#byChoice.set(choice, calls)
    const mended = given.filter(isJsonObject).flatMap((piece) => {
      const located = calls.locate(piece, answerId)
      if (located === undefined || !isAsLocated(piece, located)) this.#isNeeded = true
      return located === undefined ? [] : [located.opens ? opening(located) : continuing(located)]
    })
    if (!this.#isNeeded) return false
    if (mended.length > 0) delta['tool_calls'] = mended
    else delete delta['tool_calls']
    return true
  }
}

/** Clients concatenate the texts of chunks, including ids and names. */
function isAsLocated(given: Record<string, unknown>, { index, opens, id, name }: LocatedPiece): boolean {
  const { arguments: json = '', name: written } = functionOf(given)
  if (given['index'] !== index || typeof json !== 'string') return false
  if (!opens) return !isText(given['id']) && !isText(written)
  return given['id'] === id && isText(given['type']) && (written ?? '') === name
}

function opening({ index, id, name, json, piece }: LocatedPiece): Record<string, unknown> {
  // A call of another type has its input under another name, and no function.
  if (isText(piece['type']) && !isJsonObject(piece['function'])) return { ...piece, index, id }
  return { ...piece, index, id, type: 'function', function: { ...functionOf(piece), name, arguments: json } }
}

function continuing({ index, json, piece }: LocatedPiece): Record<string, unknown> {
  const { id: _id, type: _type, ...rest } = piece
  if (!isJsonObject(piece['function'])) return { ...rest, index }
  return { ...rest, index, function: { arguments: json } }
}

function functionOf(piece: Record<string, unknown>): Record<string, unknown> {
  return isJsonObject(piece['function']) ? piece['function'] : {}
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

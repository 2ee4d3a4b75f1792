import { isJsonObject } from '../../core/json.ts'
import { argumentsText, StreamedToolCalls } from './streamed-tool-calls.ts'

/**
 * Gives streamed tool calls the members by which clients gather them: `index` in every piece; `id`, `type` and a name in the
 * first piece of a call and in no later one. Pieces stay as they are while a server writes them so.
 */
export class ToolCallRepair {
  #isNeeded: boolean
  #hasSeenCalls = false
  readonly #byChoice = new Map<number, StreamedToolCalls>()

  /** @param isNeeded True for servers whose pieces look whole and are not, such as indexes that are used twice. */
  constructor(isNeeded = false) {
    this.#isNeeded = isNeeded
  }

  /** Must chunks with tool calls be read? The first one shows how the server writes them. */
  get readsCalls(): boolean {
    return this.#isNeeded || !this.#hasSeenCalls
  }

  /** Has a choice called a tool, as far as its pieces were read? */
  hasCalls(choice: number): boolean {
    return this.#byChoice.has(choice)
  }

  /** Mends the pieces of one delta in place; true when something was changed. */
  mend(delta: Record<string, unknown>, choice: number, answerId: string): boolean {
    const given = delta['tool_calls']
    if (!Array.isArray(given) || given.length === 0) return false
    // Of later calls no piece need have been read, so that only what a piece itself lacks is known.
    const areKnown = this.readsCalls
    this.#hasSeenCalls = true
    const calls = this.#byChoice.get(choice) ?? new StreamedToolCalls()
    this.#byChoice.set(choice, calls)
    let isWhole = true
    const mended = given.filter(isJsonObject).map((piece) => {
      const { index, opens, id, name } = calls.locate(piece, answerId)
      const isAsLocated = piece['index'] === index && (!opens || (piece['id'] === id && isText(piece['type'])))
      if (!isAsLocated && (areKnown || !isWholeItself(piece))) isWhole = false
      if (isJsonObject(functionOf(piece)['arguments'])) isWhole = false
      return opens ? opening(piece, { index, id, name }) : continuing(piece, index)
    })
    if (!isWhole) this.#isNeeded = true
    if (!this.#isNeeded) return false
    delta['tool_calls'] = mended
    return true
  }
}

/** Does a piece have all by which clients gather it, if it is one that it looks like? */
function isWholeItself(piece: Record<string, unknown>): boolean {
  const isHeadWhole = isText(piece['id']) ? isText(piece['type']) : !isText(functionOf(piece)['name'])
  return typeof piece['index'] === 'number' && isHeadWhole
}

function opening(
  piece: Record<string, unknown>,
  { index, id, name }: { readonly index: number; readonly id: string; readonly name: string },
): Record<string, unknown> {
  // A call of another type has its input under another name, and no function.
  if (isText(piece['type']) && !isJsonObject(piece['function'])) return { ...piece, index, id }
  return { ...piece, index, id, type: 'function', function: { ...functionOf(piece), name, arguments: jsonOf(piece) } }
}

function continuing(piece: Record<string, unknown>, index: number): Record<string, unknown> {
  const { id: _id, type: _type, ...rest } = piece
  if (!isJsonObject(piece['function'])) return { ...rest, index }
  return { ...rest, index, function: { arguments: jsonOf(piece) } }
}

function functionOf(piece: Record<string, unknown>): Record<string, unknown> {
  return isJsonObject(piece['function']) ? piece['function'] : {}
}

function jsonOf(piece: Record<string, unknown>): string {
  return argumentsText(functionOf(piece)['arguments'])
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

import { isJsonObject } from '../../core/json.ts'
import { openaiFinishReason } from './openai-finish-reason.ts'

/** What a parsed chunk held, after mending. */
export interface ChunkFindings {
  /** Was anything changed in the chunk? */
  changed: boolean
  /** Did it carry something a caller keeps? */
  hasContent: boolean
  /** Did it end a choice? */
  hasEnd: boolean
}

/**
 * Follows the choices of one streamed answer: which have begun, which have ended. Gives each its role in its first
 * delta, and turns finish reasons that are none of the dialect's into one that is.
 */
export class StreamedChoices {
  readonly #expected: number
  readonly #begun = new Set<number>()
  /** Made when the first choice ends: a stream lives long, and that is its last moment. */
  #ended: Set<number> | undefined

  /** @param expected How many choices were asked for. */
  constructor(expected: number) {
    this.#expected = expected
  }

  /** True once every choice asked for has begun. */
  get haveBegun(): boolean {
    return this.#begun.size >= this.#expected
  }

  /** True once every choice asked for, and every other that began, has given its finish reason. */
  get haveEnded(): boolean {
    const endedCount = this.#ended?.size ?? 0
    return endedCount >= this.#expected && endedCount >= this.#begun.size
  }

  /** Looks through a chunk's choices and mends them in place. */
  mend(choices: readonly unknown[]): ChunkFindings {
    const findings: ChunkFindings = { changed: false, hasContent: false, hasEnd: false }
    for (const choice of choices) if (isJsonObject(choice)) this.#mendChoice(choice, findings)
    return findings
  }

  #mendChoice(choice: Record<string, unknown>, findings: ChunkFindings): void {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0
    if (!isJsonObject(choice['delta'])) {
      choice['delta'] = {}
      findings.changed = true
    }
    const delta = choice['delta'] as Record<string, unknown>
    if (!this.#begun.has(index)) {
      this.#begun.add(index)
      if (delta['role'] !== 'assistant') {
        choice['delta'] = { ...delta, role: 'assistant' }
        findings.changed = true
      }
    }
    if (carriesContent(delta)) findings.hasContent = true
    const reason = choice['finish_reason']
    if (reason === null || reason === undefined) return
    const known = reason === '' ? null : openaiFinishReason(reason)
    if (known !== null) {
      this.#ended ??= new Set()
      this.#ended.add(index)
      findings.hasEnd = true
    }
    if (known !== reason) {
      choice['finish_reason'] = known
      findings.changed = true
    }
  }
}

function carriesContent(delta: Record<string, unknown>): boolean {
  for (const name in delta) {
    const value = delta[name]
    if (typeof value === 'string' ? value !== '' && name !== 'role' : hasMembers(value)) return true
  }
  return false
}

function hasMembers(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

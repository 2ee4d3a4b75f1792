import { isJsonObject } from '../core/json.ts'

/** A part of a request that is no JSON. */
export interface CachedPart {
  readonly name: string
  readonly chunks: readonly Uint8Array[]
}

/**
 * How an endpoint's answers may be given again to an equal request. Requests are equal when all members of their bodies are, byte
 * for byte, but for those that are declared here to decide nothing; so a member that nobody knew of keeps requests apart.
 */
export interface CachedAnswers<Request, Offers> {
  /** Members of the body that do not decide the answer. */
  readonly leftOut: ReadonlySet<string>
  /** The parts of a request that is a form, in place of the members of a body. Absent: no form is answered from the cache. */
  parts?(request: Request): readonly CachedPart[]
  /** What of the members that are left out decides the form of the answer after all; absent: nothing. */
  form?(request: Request): string
  /** Headers of the request that decide the answer at a vendor; absent: none. */
  headers?(vendor: Offers): readonly string[]
  /** Does the request ask for the same answer each time, as far as a request can? */
  isDeterministic(request: Request): boolean
  /** True for a request whose answer depends on more than the request, or has effects. */
  isExcluded(request: Request): boolean
  /** Marks in the bytes of an answer that must not be given again, such as a refusal. A mark with its quotes never stands in a text. */
  readonly refusals: readonly string[]
  /** Where an answer, or an event of a stream, has its id; absent: it has none. */
  readonly idPaths?: readonly (readonly string[])[]
  /** What stands before the cost of the call in a streamed answer, where one says it: `"cost":"`. */
  readonly costMark?: string
}

/** Values of `service_tier` by which every request is served the same way. */
const DEFAULT_TIERS: ReadonlySet<unknown> = new Set([undefined, null, 'auto', 'default'])

/** Does a request name another tier of service than the ordinary one? */
export function hasOtherTier({ service_tier }: Readonly<Record<string, unknown>>): boolean {
  return !DEFAULT_TIERS.has(service_tier)
}

/** Is one of these tools run by the vendor, as far as its type says? A tool without a type is the caller's. */
export function hasHostedTool(tools: unknown, ofCallers: ReadonlySet<unknown>): boolean {
  return Array.isArray(tools) && tools.some((tool) => isJsonObject(tool) && !ofCallers.has(tool['type']))
}

/** Does a value name a file that a vendor keeps, at any depth? Text that speaks of one does not. */
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

import { isJsonObject } from '../core/json.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'

/** Paths of requests that begin a new call. All other paths are about what an account has stored. */
const NEW_CALLS: ReadonlySet<string> = new Set(ENDPOINTS.map(({ path }) => path))

/** Members that refer to stored answers, conversations, files or containers of an account. */
const REFERENCE = /^(?:conversation|container)$|_ids?$/
/** Ids that a conversation itself contains: those of tool calls and of people. */
const HARMLESS: ReadonlySet<string> = new Set(['call_id', 'tool_call_id', 'tool_use_id', 'user_id'])

/**
 * Returns what of a request may read or change something that an account has stored: its path, or the name of a member. Returns
 * `undefined` for a new call that contains all of its input.
 */
export function storedReference(path: string, request: object): string | undefined {
  if (!NEW_CALLS.has(path)) return path
  const pending: unknown[] = [request]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (Array.isArray(value)) for (const entry of value) if (isContainer(entry)) pending.push(entry)
    if (!isJsonObject(value)) continue
    const isNamed = typeof value['type'] === 'string' || typeof value['role'] === 'string'
    if (value['type'] === 'item_reference' || (!isNamed && typeof value['id'] === 'string')) return 'id'
    for (const [name, member] of Object.entries(value)) {
      // The properties of a schema have such names too; their values are objects.
      const isId = typeof member === 'string' || Array.isArray(member)
      if (isId && REFERENCE.test(name) && !HARMLESS.has(name)) return name
      if (isContainer(member)) pending.push(member)
    }
  }
  return undefined
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

import { createHash } from 'node:crypto'
import { exactJsonText, parseExactJson } from '../core/exact-json.ts'
import { isJsonObject } from '../core/json.ts'
import { unsupportedField } from './field-errors.ts'

/**
 * Rule for an id that no answer to the account has named. `object`: the request is rejected, because the vendor would open the
 * object with the operator's key. `record`: another id replaces it, because the vendor only reads it as part of an earlier
 * answer.
 */
export type IdRule = 'object' | 'record'

/**
 * Members of requests that name objects at vendors. `type.member` holds in objects of this type, `parent.member` in objects
 * below this member, and `member` everywhere else.
 */
export const VENDOR_OBJECT_MEMBERS: Readonly<Record<string, IdRule>> = {
  file_id: 'object',
  file_ids: 'object',
  container: 'object',
  container_id: 'object',
  'container.id': 'object',
  // Skills of other types are offered to all customers of a vendor.
  'custom.skill_id': 'object',
  'skill_reference.skill_id': 'object',
  vector_store_id: 'object',
  vector_store_ids: 'object',
  collection_ids: 'object',
  knowledge_id: 'object',
  library_ids: 'object',
  cached_content: 'object',
  remote_engine_id: 'object',
  connector_id: 'object',
  tunnel_id: 'object',
  conversation: 'object',
  'conversation.id': 'object',
  'prompt.id': 'object',
  'audio.id': 'object',
  'voice.id': 'object',
  comparison_response_id: 'object',
  // The gateway continues its own stored answers, and sends the vendor's id afterwards.
  previous_response_id: 'object',
  continuation_id: 'object',
  user_profile_id: 'object',
  workspace_id: 'object',
  'diagnostics.previous_message_id': 'record',
  'file_citation.file_id': 'record',
  'container_file_citation.file_id': 'record',
  'container_file_citation.container_id': 'record',
  'file_path.file_id': 'record',
  'results.file_id': 'record',
  'code_execution_output.file_id': 'record',
  'bash_code_execution_output.file_id': 'record',
}

const NAMES: ReadonlySet<string> = new Set(
  Object.keys(VENDOR_OBJECT_MEMBERS).map((key) => key.slice(key.lastIndexOf('.') + 1)),
)

/** Members whose content belongs to the caller, below the top of a request: schemas and arguments of tools, and metadata. */
const CALLER_MEMBERS: ReadonlySet<string> = new Set(
  'parameters input_schema schema json_schema arguments metadata input_examples'.split(' '),
)

/** Addresses of files that callers of a vendor's key have uploaded, by their schemes. */
const FILE_ADDRESS = /^(?:fileid|mm_file|ms):\/\//i

/** A member that names an object at a vendor. */
interface NamedObject {
  readonly holder: Record<string, unknown>
  readonly member: string
  readonly ids: readonly string[]
  readonly rule: IdRule
  /** Path in the request: `input[0].content[1].file_id`. */
  readonly path: string
}

/** Finds members that name objects, in one pass. */
class ObjectWalk {
  readonly found: NamedObject[] = []
  readonly #path: (string | number)[] = []

  constructor(value: unknown) {
    this.#visit(value, '')
  }

  #visit(value: unknown, parent: string): void {
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) this.#enter(index, value[index], parent)
    } else if (isJsonObject(value) && !ArrayBuffer.isView(value)) {
      for (const member in value) {
        const inner = value[member]
        if (NAMES.has(member)) this.#add(value, member, parent)
        else if (typeof inner === 'string' && FILE_ADDRESS.test(inner)) this.#found(value, member, [inner], 'object')
        // The input of a tool call is the model's; that of a request is a list, a string or the body of a vendor's own API.
        const isOfCaller = CALLER_MEMBERS.has(member) || (member === 'input' && isJsonObject(inner))
        const isEntered = this.#path.length === 0 ? member !== 'metadata' : !isOfCaller
        if (typeof inner === 'object' && isEntered) this.#enter(member, inner, member)
      }
      // A field of a form: `images[0][file_id]`.
      const { kind, name, value: text } = value
      if (kind !== 'field' || typeof name !== 'string' || typeof text !== 'string') return
      if (NAMES.has(name.split(/[[\].]/).findLast(isName) ?? '')) this.#found(value, 'value', [text], 'object', name)
    }
  }

  #enter(key: string | number, value: unknown, parent: string): void {
    this.#path.push(key)
    this.#visit(value, parent)
    this.#path.pop()
  }

  #add(holder: Record<string, unknown>, member: string, parent: string): void {
    const value = holder[member]
    const ids = (Array.isArray(value) ? value : [value]).filter((id) => typeof id === 'string' && id !== '')
    const { type } = holder
    const keys = [`${typeof type === 'string' ? type : ''}.${member}`, `${parent}.${member}`, member]
    const rule = keys.map((key) => VENDOR_OBJECT_MEMBERS[key]).find((known) => known !== undefined)
    if (ids.length > 0 && rule !== undefined) this.#found(holder, member, ids, rule)
  }

  #found(holder: NamedObject['holder'], member: string, ids: readonly string[], rule: IdRule, field?: string): void {
    const path = [...this.#path, member].map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
    this.found.push({ holder, member, ids, rule, path: field ?? path.slice(1) })
  }
}

function isName(key: string): boolean {
  return /[a-z]/i.test(key)
}

/** Returns the ids of vendor objects that a value names. */
export function vendorObjectIds(value: unknown): readonly string[] {
  return new ObjectWalk(value).found.flatMap(({ ids }) => ids)
}

/**
 * Returns a request that names only objects of the account: one key of the operator serves many accounts, so a caller could
 * otherwise open another account's files. It is the same object if nothing is replaced.
 * @param own Ids that answers to the account have named.
 * @throws GatewayError `unsupported_parameter` naming the member.
 */
export function withOwnObjects<Request extends object>(request: Request, own: ReadonlySet<string>): Request {
  const isForeign = ({ ids }: NamedObject): boolean => ids.some((id) => !own.has(id))
  const foreign = new ObjectWalk(request).found.filter(isForeign)
  const refused = foreign.find(({ rule }) => rule === 'object')
  if (refused !== undefined)
    throw unsupportedField(refused.path, 'names an object that belongs to the operator of this gateway')
  if (foreign.length === 0) return request
  const copy = parseExactJson(exactJsonText(request)) as Request
  for (const { holder, member, ids } of new ObjectWalk(copy).found.filter(isForeign))
    holder[member] = standInId(ids[0]!)
  return copy
}

/** Returns an id that no vendor has, always the same for an id. It keeps the prefix, by which vendors check the kind of an id. */
export function standInId(id: string): string {
  return `${/^[a-z]{1,16}[_-]/.exec(id)?.[0] ?? ''}${createHash('sha256').update(id).digest('hex').slice(0, 40)}`
}

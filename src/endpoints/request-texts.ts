import { isJsonObject } from '../core/json.ts'
import type { KindOf, TextKind, TextPart, TextRole } from './texts.ts'

/** How an endpoint reads the strings of its requests. Members that it does not name are parameters. */
export interface RequestPlaces {
  /** Kinds of strings, and of lists of strings, at the top of the body. The rest are parameters. */
  readonly kinds?: Readonly<Record<string, TextKind>>
  /** Kinds of strings inside of lists and objects. */
  readonly kindOf?: KindOf
  /** Members that hold the conversation. Hooks see them after all others, in this order. */
  readonly last?: readonly string[]
  /** Members in which callers choose the names, such as documents. No string in them is left out by its name. */
  readonly open?: readonly string[]
  /** Members that the vendor never gets. */
  readonly unsent?: readonly string[]
  /** Who wrote the strings of an entry of a member, or of the whole member unless it is a list. */
  roleOf?(member: string, entry: unknown): TextRole | undefined
}

type Owner = Readonly<Record<string, unknown>>

/** Whose names members have: the API's, a JSON schema's or the caller's. */
type Naming = 'api' | 'schema' | 'caller'

/** Names with an id or one of a few values. Such a string is left out if it matches {@link LITERAL}. */
const LITERALS: ReadonlySet<string> = new Set(
  `model models type role object status phase detail format media_type mime_type voice language languages size quality
  style background moderation response_format output_format encoding_format stream_format service_tier reasoning_effort effort
  verbosity truncation tool_choice mode modalities include timestamp_granularities aspect_ratio resolution ttl id
  previous_response_id previous_interaction_id file_id conversation container betas search_context_size server_label
  allowed_callers caller display return_format syntax inference_geo speed prompt_cache_retention`.split(/\s+/),
)
const LITERAL = /^[\w.:/-]{1,256}$/
const ID_NAME = /^id$|_ids?$/

/** Names with bytes in base64, or with state that a vendor has encrypted or signed. */
const ENCODED: ReadonlySet<string> = new Set(
  `data b64_json file_data image_data bytes signature thought_signature encrypted_content encrypted_index
  encrypted_stdout`.split(/\s+/),
)
const NOT_ENCODED = /[^\w+/=:.-]/
const DATA_URL = /^data:[\w.+/-]{1,128}(?:;[\w.=+-]{1,128}){0,8},/

/** Names of JSON Schema whose strings are compared, not read. */
const COMPARED: ReadonlySet<string> = new Set(
  '$ref $id $schema $anchor $dynamicRef $dynamicAnchor type format pattern enum const required'.split(' '),
)
const SCHEMAS: ReadonlySet<string> = new Set(['parameters', 'input_schema', 'output_schema', 'schema'])

/** Members that list tools, and names in them with credentials for the tools' servers. */
const TOOLS: ReadonlySet<string> = new Set(['tools', 'mcp_servers'])
const CREDENTIALS: ReadonlySet<string> = new Set(['headers', 'authorization', 'authorization_token'])

/**
 * Returns every string of a request that a vendor may read, in one pass. Excludes names of members, ids, literals of the API,
 * values that a JSON schema compares, bytes and encrypted state, credentials of tools and the address of a webhook.
 */
export function requestTexts(request: object, places: RequestPlaces): readonly TextPart[] {
  const { last = [], unsent = [] } = places
  const names = Object.keys(request).filter((name) => !last.includes(name) && !unsent.includes(name))
  const walk = new TextWalk(places)
  for (const name of [...names, ...last]) walk.member(name, (request as Owner)[name])
  return walk.texts
}

/** Step of a path. Paths of all texts together may be much longer than the request, so each is built when it is read. */
interface Place {
  readonly above: Place | undefined
  readonly step: string | number
  readonly id: string
}

class PlacedText implements TextPart {
  readonly id: string
  readonly kind: TextKind
  readonly index: number
  readonly text: string
  readonly role?: TextRole
  readonly #place: Place

  constructor(place: Place, kind: TextKind, text: string, { index, role }: Pick<TextPart, 'index' | 'role'>) {
    this.id = place.id
    this.kind = kind
    this.index = index
    this.text = text
    if (role !== undefined) this.role = role
    this.#place = place
  }

  get path(): readonly (string | number)[] {
    const steps: (string | number)[] = []
    for (let place: Place | undefined = this.#place; place !== undefined; place = place.above) steps.push(place.step)
    return steps.reverse()
  }
}

class TextWalk {
  readonly texts: TextPart[] = []
  readonly #places: RequestPlaces
  #of: Pick<TextPart, 'index' | 'role'> = { index: 0 }
  #isOfTools = false

  constructor(places: RequestPlaces) {
    this.#places = places
  }

  member(name: string, value: unknown): void {
    if (name === 'webhook_url') return
    const { kinds, open, roleOf } = this.#places
    const place = { above: undefined, step: name, id: name }
    const naming = name === 'metadata' || open?.includes(name) === true ? 'caller' : 'api'
    this.#isOfTools = TOOLS.has(name)
    const kind = kinds?.[name]
    if (!Array.isArray(value)) {
      this.#of = { index: 0, role: roleOf?.(name, value) }
      this.#walk(value, place, { name, kind, naming, owner: undefined })
      return
    }
    for (const [index, entry] of value.entries()) {
      this.#of = { index, role: roleOf?.(name, entry) }
      this.#walk(entry, below(place, index), { name, kind, naming, owner: undefined })
    }
  }

  #walk(value: unknown, place: Place, said: Said): void {
    if (typeof value === 'string') {
      if (value !== '' && (said.kind !== undefined || !isLeftOut(value, said))) this.#add(place, said.kind, value)
    } else if (Array.isArray(value)) {
      for (const [index, entry] of value.entries()) this.#walk(entry, below(place, index), said)
    } else if (isJsonObject(value)) {
      // Arguments that are written as an object are the JSON text of it, as they are in streams.
      if (said.kind !== 'tool_arguments') this.#members(value, place, said.naming)
      else if (Object.keys(value).length > 0) this.#add(place, said.kind, JSON.stringify(value))
    }
  }

  #members(owner: Owner, place: Place, naming: Naming): void {
    for (const name of Object.keys(owner)) {
      if (this.#isOfTools && naming === 'api' && CREDENTIALS.has(name)) continue
      const kind = naming === 'schema' && !DESCRIBES.has(name) ? undefined : this.#places.kindOf?.(name, owner)
      const within = naming !== 'api' ? naming : name === 'metadata' ? 'caller' : SCHEMAS.has(name) ? 'schema' : 'api'
      this.#walk(owner[name], below(place, name), { name, kind, naming: within, owner })
    }
  }

  #add(place: Place, kind: TextKind = 'parameter', text: string): void {
    this.texts.push(new PlacedText(place, kind, text, this.#of))
  }
}

const DESCRIBES: ReadonlySet<string> = new Set(['description', 'title'])

/** Facts about a value from the member that holds it. */
interface Said {
  readonly name: string
  readonly kind: TextKind | undefined
  readonly naming: Naming
  /** Object of the member; undefined at the top of the body. */
  readonly owner: Owner | undefined
}

function below(above: Place, step: string | number): Place {
  return { above, step, id: typeof step === 'number' ? `${above.id}[${step}]` : `${above.id}.${step}` }
}

function isLeftOut(text: string, { name, naming, owner }: Said): boolean {
  if (text.startsWith('data:')) {
    const head = DATA_URL.exec(text.slice(0, 2_048))?.[0]
    if (head?.endsWith(';base64,') && !NOT_ENCODED.test(text.slice(head.length))) return true
  }
  if (naming === 'caller') return false
  if (naming === 'schema') return COMPARED.has(name)
  if (ENCODED.has(name)) return !NOT_ENCODED.test(text)
  const isId = owner !== undefined && (ID_NAME.test(name) || (name === 'name' && owner['role'] === undefined))
  return (isId || LITERALS.has(name)) && LITERAL.test(text)
}

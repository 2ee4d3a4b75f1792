import { Buffer } from 'node:buffer'
import { createHash, hash } from 'node:crypto'
import type { CatalogModel } from '../../catalog/model.ts'
import type { CachedPart } from '../../endpoints/cached-answers.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { type JsonMember, outlineMembers } from '../../wire/json-spans.ts'

/** Version of the formats of entries and keys. Increase it when either changes. */
const FORMAT_VERSION = 2

/** Parts of a key in addition to the members of the request: everything that affects the answer or its readers. */
export interface KeyParts {
  /** Generation of all entries, then of the account if it has its own entries. */
  readonly generations: readonly number[]
  /** Callers that share the entry. */
  readonly partition: readonly string[]
  readonly path: string
  readonly model: CatalogModel
  /** Form of the answer: stream or whole, and other ignored members that affect it. */
  readonly form: string
  /** Names and values of headers that decide the answer. */
  readonly headers: readonly (string | undefined)[]
  /** Fingerprint of the rules that may have changed the request. */
  readonly fingerprint: string
}

/**
 * Returns the key of a request: a digest of the parts and of each member of the body that is not ignored, by name, length and
 * bytes. Requests that parse differently in such a member never have the same key. Undefined for a body that is not an object.
 */
export function cacheKey(parts: KeyParts, body: Uint8Array, leftOut: ReadonlySet<string>): string | undefined {
  const members = outlineMembers([body])
  if (members === undefined) return undefined
  const deciding: JsonMember[] = []
  for (const member of members) if (!leftOut.has(member.name)) deciding.push(member)
  deciding.sort(byName)
  let head = headOf(parts)
  // The head contains the lengths, so the values need no separator.
  for (const { name, valueStart, end } of deciding) head += `${withLength(name)} ${end - valueStart}`
  return digestOf(head, asBuffer(body), deciding)
}

/**
 * Returns the key of a form: a digest of name, length and bytes of each part that is not ignored. Parts of one name stay in order.
 */
export function formKey(parts: KeyParts, form: readonly CachedPart[], leftOut: ReadonlySet<string>): string {
  const deciding = form.filter(({ name }) => !leftOut.has(name)).sort(byName)
  let head = headOf(parts)
  for (const { name, chunks } of deciding) head += `${withLength(name)} ${lengthOf(chunks)}`
  const digest = createHash('sha256').update(head)
  for (const { chunks } of deciding) for (const chunk of chunks) digest.update(chunk)
  return digest.digest('base64url')
}

function lengthOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
}

/** Each text follows its length, so that two lists of parts never have the same head. */
function headOf({ generations, partition, path, model, form, headers, fingerprint }: KeyParts): string {
  let head = `${FORMAT_VERSION} ${generations.join()} ${revisionOf(model)} ${partition.length}`
  for (const text of partition) head += withLength(text)
  head += withLength(path) + withLength(form) + withLength(fingerprint) + headers.length
  // A missing header differs from an empty one.
  for (const value of headers) head += value === undefined ? ' -' : withLength(value)
  return head
}

function withLength(text: string): string {
  return ` ${text.length}:${text}`
}

/** One call for all of a small request is cheaper than one call per member. Larger data is not copied. */
const scratch = Buffer.allocUnsafeSlow(16 * 1024)
const MOST_BYTES_OF_CHARACTER = 3

function digestOf(head: string, body: Buffer, members: readonly JsonMember[]): string {
  if (head.length * MOST_BYTES_OF_CHARACTER + body.byteLength > scratch.byteLength) {
    const digest = createHash('sha256').update(head)
    for (const { valueStart, end } of members) digest.update(body.subarray(valueStart, end))
    return digest.digest('base64url')
  }
  let length = scratch.write(head)
  for (const { valueStart, end } of members) length += body.copy(scratch, length, valueStart, end)
  return hash('sha256', scratch.subarray(0, length), 'base64url')
}

type Named = Pick<JsonMember, 'name'>

function byName({ name: left }: Named, { name: right }: Named): number {
  return left < right ? -1 : left === right ? 0 : 1
}

const revisions = new WeakMap<CatalogModel, string>()

/** Returns a digest of the catalog's facts of a model: a changed row may mean another model. */
function revisionOf(model: CatalogModel): string {
  let revision = revisions.get(model)
  if (revision === undefined) {
    revision = createHash('sha256')
      .update(Buffer.from(JSON.stringify(model)))
      .digest('base64url')
    revisions.set(model, revision)
  }
  return revision
}

import { Buffer } from 'node:buffer'
import { createHash, hash } from 'node:crypto'
import type { CatalogModel } from '../../catalog/model.ts'
import type { CachedPart } from '../../endpoints/cached-answers.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { type JsonMember, outlineMembers } from '../../wire/json-spans.ts'

/** Version of what entries look like and of what keys are made of. Raise it when either changes. */
const FORMAT_VERSION = 2

/** What decides an answer, or who may have it, beside the members of its request. */
export interface KeyParts {
  /** Of everything, then of the account where it has entries of its own. */
  readonly generations: readonly number[]
  /** Who shares the entry. */
  readonly partition: readonly string[]
  readonly path: string
  readonly model: CatalogModel
  /** Stream or whole, and what else of the members left out decides the form. */
  readonly form: string
  /** Names and values of headers that decide the answer. */
  readonly headers: readonly (string | undefined)[]
  /** What stands for the rules that may have changed the request. */
  readonly fingerprint: string
}

/**
 * The key of a request: a digest of the parts and of each member of the body that is not left out, by its name, length and bytes.
 * Two requests whose bodies parse differently in such a member never have the same key. Undefined for a body that is no object.
 */
export function cacheKey(parts: KeyParts, body: Uint8Array, leftOut: ReadonlySet<string>): string | undefined {
  const members = outlineMembers([body])
  if (members === undefined) return undefined
  const deciding: JsonMember[] = []
  for (const member of members) if (!leftOut.has(member.name)) deciding.push(member)
  deciding.sort(byName)
  let head = headOf(parts)
  // Lengths stand here, so the values need nothing between them.
  for (const { name, valueStart, end } of deciding) head += `${withLength(name)} ${end - valueStart}`
  return digestOf(head, asBuffer(body), deciding)
}

/**
 * The same for a form: of each part that is not left out its name, length and bytes. Parts of one name stay in their order.
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

/** Each text stands behind its length, so that two lists of parts never make the same head. */
function headOf({ generations, partition, path, model, form, headers, fingerprint }: KeyParts): string {
  let head = `${FORMAT_VERSION} ${generations.join()} ${revisionOf(model)} ${partition.length}`
  for (const text of partition) head += withLength(text)
  head += withLength(path) + withLength(form) + withLength(fingerprint) + headers.length
  // A header that is not there is none that is empty.
  for (const value of headers) head += value === undefined ? ' -' : withLength(value)
  return head
}

function withLength(text: string): string {
  return ` ${text.length}:${text}`
}

/** One call for all of a small request costs less than one for each member. What is larger is not copied. */
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

/** Stands for everything that the catalog says of a model: a row that was changed may mean another model. */
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

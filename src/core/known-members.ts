// See docs/decisions/0022-sign-in-and-options.md.

/** Names of the members of an options type: those of {@link memberNames}, or the shape of its schema. */
export type MemberNames = Readonly<Record<string, unknown>>

type KeysOf<Options> = Options extends unknown ? keyof Options & string : never
type Words<Text extends string> = Text extends `${infer First} ${infer Others}` ? First | Words<Others> : Text
type Exactly<Names extends string, Given extends string> = Exclude<Names, Given> | Exclude<Given, Names> extends never
  ? unknown
  : `missing or unknown: ${Exclude<Names, Given> | Exclude<Given, Names>}`

/**
 * Returns the members of an options type, whose names are separated by spaces: `memberNames<Options>()('path clock')`. It does not
 * compile if the names lack a member or contain an unknown one.
 */
export function memberNames<Options>() {
  return <const Texts extends readonly string[]>(
    ...texts: Texts & Exactly<KeysOf<Options>, Words<Texts[number]>>
  ): Readonly<Record<KeysOf<Options>, true>> =>
    Object.fromEntries(texts.flatMap((text) => text.split(' ')).map((name) => [name, true])) as Readonly<
      Record<KeysOf<Options>, true>
    >
}

/**
 * Rejects unknown members of an options object. Checks its own enumerable members, including undefined ones, but not those that a
 * class inherits. An omitted object is valid.
 * @param owner Name of the called function for the message: `createGateway`. May be empty.
 * @param path Path of the object below its owner: `limits`. Empty for the options object itself.
 * @throws TypeError with the path, the unknown member and the nearest known one, or if the value is not an object.
 */
export function checkMembers(value: unknown, names: MemberNames, owner: string, path = ''): void {
  if (value === undefined || value === null) return
  if (typeof value !== 'object') throw notAnObject(owner, path)
  for (const name of Object.keys(value))
    if (!Object.hasOwn(names, name)) throw unknownMember(name, Object.keys(names), owner, path)
}

/**
 * Calls {@link checkMembers} for an object that is required.
 * @throws TypeError also if the object is missing.
 */
export function checkGivenMembers(value: unknown, names: MemberNames, owner: string, path = ''): void {
  if (value === undefined || value === null) throw notAnObject(owner, path)
  checkMembers(value, names, owner, path)
}

/**
 * Rejects an unknown value of an enumerated option. `undefined` is valid.
 * @param owner Name of the called function for the message: `sqliteStore`. If empty, the message begins with the path.
 * @param path Path of the option below its owner: `clock`.
 * @throws TypeError with the path, the accepted values and the received one.
 */
export function checkEnumerated(value: unknown, known: readonly string[], owner: string, path: string): void {
  if (value === undefined || known.includes(value as string)) return
  throw new TypeError(`${prefixOf(owner)}${path} must be one of ${known.join(', ')}; got ${JSON.stringify(value)}`)
}

function notAnObject(owner: string, path: string): TypeError {
  return new TypeError(`${prefixOf(owner)}${path || 'options'} must be an object`)
}

/** Returns the error for an unknown member: `createGateway: limits.rpm is unknown; did you mean requestsPerMinute?`. */
export function unknownMember(name: string, known: readonly string[], owner: string, path = ''): TypeError {
  const place = IDENTIFIER.test(name) ? `${path === '' ? '' : `${path}.`}${name}` : `${path}[${JSON.stringify(name)}]`
  const nearest = nearestName(name, known)
  const hint = nearest === undefined ? `; known: ${known.join(', ')}` : `; did you mean ${nearest}?`
  return new TypeError(`${prefixOf(owner)}${place} is unknown${hint}`)
}

/** Returns the hint of an error about an unknown name: `did you mean chat?`, or the list of known names. */
export function hintAt(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  return nearest === undefined ? `there are ${known.join(', ')}` : `did you mean ${nearest}?`
}

const IDENTIFIER = /^[\w$]+$/

function prefixOf(owner: string): string {
  return owner === '' ? '' : `${owner}: `
}

/** Minimum length of a text that counts as part of a name, so that `id` does not match `width`. */
const MIN_PART = 3
/** Share of a name's letters that may be wrong. */
const WRONG_SHARE = 0.4

/**
 * Returns the known name that was probably meant, or `undefined` if none is near. Rules in order: the same letters in another
 * case or with dashes; the initials (`rpm`); the fewest typing mistakes; a name that contains the text from the start of a word,
 * or the reverse; the shortest name with the same letters in order and few others. A name that begins with the text wins over one
 * with several mistakes. The first name wins a tie.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const letters = lettersOf(name)
  if (letters === '') return undefined
  const same = known.find((candidate) => lettersOf(candidate) === letters)
  if (same !== undefined) return same
  const initials = letters.length >= 2 ? known.find((candidate) => initialsOf(candidate) === letters) : undefined
  if (initials !== undefined) return initials
  const most = Math.max(1, Math.floor(letters.length * WRONG_SHARE))
  const ranked = known
    .map((candidate) => ({ candidate, mistakes: mistakesBetween(letters, lettersOf(candidate), most) }))
    .sort((one, other) => one.mistakes - other.mistakes)
  const [first] = ranked
  if (first !== undefined && first.mistakes <= most) {
    const begun =
      first.mistakes > 1 && letters.length >= MIN_PART
        ? known.find((candidate) => lettersOf(candidate).startsWith(letters))
        : undefined
    return begun ?? first.candidate
  }
  const part = ranked.find(({ candidate }) => isPart(name, candidate))
  return (part ?? ranked.find(({ candidate }) => hasLetters(lettersOf(candidate), letters)))?.candidate
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** Returns `rpm` for `requestsPerMinute`. */
function initialsOf(name: string): string {
  return name
    .replace(/(?<=.)[^A-Z]+/g, '')
    .replace(/[^A-Za-z]/g, '')
    .toLowerCase()
}

/** Whether one name is most of the other, or a part of it that begins with a word. `test` does not match `gpt-5-chat-latest`. */
function isPart(one: string, other: string): boolean {
  const [short, long] = lettersOf(one).length < lettersOf(other).length ? [one, other] : [other, one]
  const letters = lettersOf(short)
  if (letters.length < MIN_PART) return false
  if (isMostOf(letters, lettersOf(long))) return lettersOf(long).includes(letters)
  const words = wordsOf(long)
  return words.some((_word, index) => words.slice(index).join('').startsWith(letters))
}

/** Returns `max` and `concurrency` for `maxConcurrency`. */
function wordsOf(name: string): string[] {
  const spaced = name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
  return spaced.toLowerCase().match(/[a-z0-9]+/g) ?? []
}

/** Whether a text has at least half of the letters of another. */
function isMostOf(letters: string, text: string): boolean {
  return letters.length * 2 >= text.length
}

/** Whether a text contains the letters in their order and few others. `perEndUser` contains those of `perUser`. */
function hasLetters(text: string, letters: string): boolean {
  if (letters.length <= MIN_PART || !isMostOf(letters, text)) return false
  let place = -1
  return [...letters].every((letter) => {
    place = text.indexOf(letter, place + 1)
    return place !== -1
  })
}

/**
 * Number of letters to insert, delete, replace or swap with their neighbor (optimal string alignment). Above `most`, returns any
 * larger number or the difference of the lengths: lists of models are long, and a caller waits.
 */
export function mistakesBetween(one: string, other: string, most: number): number {
  const difference = Math.abs(one.length - other.length)
  if (difference > most) return difference
  const width = other.length + 1
  let beforeLast = new Uint16Array(width)
  let last = new Uint16Array(width)
  for (let column = 1; column < width; column++) last[column] = column
  let current = new Uint16Array(width)
  for (let row = 1; row <= one.length; row++) {
    const letter = one.charCodeAt(row - 1)
    current[0] = row
    let leastOfRow = row
    for (let column = 1; column <= other.length; column++) {
      const isEqual = letter === other.charCodeAt(column - 1)
      let least = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (isEqual ? 0 : 1))
      const isSwapped =
        row > 1 &&
        column > 1 &&
        letter === other.charCodeAt(column - 2) &&
        one.charCodeAt(row - 2) === other.charCodeAt(column - 1)
      if (isSwapped) least = Math.min(least, beforeLast[column - 2]! + 1)
      current[column] = least
      if (least < leastOfRow) leastOfRow = least
    }
    // A swap refers to the row before the last one and costs 1.
    if (leastOfRow > most + 1) return leastOfRow
    const free = beforeLast
    beforeLast = last
    last = current
    current = free
  }
  return last[other.length]!
}

/**
 * Returns the error for a file of an operator. Its message has a line for each fault: `prices[3].amount: …`.
 * @param root Prefix of every path. Empty if the path itself begins with a name.
 */
export function schemaError(
  root: string,
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
): TypeError {
  return new TypeError(issues.map(({ path, message }) => `${pathText(root, path)}: ${message}`).join('\n'))
}

/** Formats the path of a value: `models[2].kind`. */
export function pathText(root: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>((whole, step) => {
    if (typeof step === 'number') return `${whole}[${step}]`
    return whole === '' ? String(step) : `${whole}.${String(step)}`
  }, root)
}

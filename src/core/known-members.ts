type KeysOf<Options> = Options extends unknown ? keyof Options : never

/**
 * The members of an options type. A list with `satisfies MemberNames<Options>` does not compile when it lacks one of them or has one
 * too many.
 */
export type MemberNames<Options> = Readonly<Record<KeysOf<Options>, true>>

/**
 * Refuses members that an options object does not have. Its own enumerable members count, also those that are undefined; what a
 * class inherits does not. An absent object is right.
 * @param owner what was called, for the message: `createGateway`. Empty: nothing stands before the path.
 * @param path of the object below its owner: `limits`. Empty: the options themselves.
 * @throws TypeError naming the path, the unknown member and the nearest known one; and for a value that is no object.
 */
export function checkMembers(value: unknown, names: Readonly<Record<string, true>>, owner: string, path = ''): void {
  if (value === undefined || value === null) return
  if (typeof value !== 'object') throw notAnObject(owner, path)
  for (const name of Object.keys(value))
    if (!Object.hasOwn(names, name)) throw unknownMember(name, Object.keys(names), owner, path)
}

/**
 * `checkMembers` for an object that cannot be left out.
 * @throws TypeError also when there are none.
 */
export function checkGivenMembers(
  value: unknown,
  names: Readonly<Record<string, true>>,
  owner: string,
  path = '',
): void {
  if (value === undefined || value === null) throw notAnObject(owner, path)
  checkMembers(value, names, owner, path)
}

/**
 * Refuses a value that an enumerated option does not have. `undefined` is right.
 * @param owner what was called, for the message: `sqliteStore`. If empty, the message begins with the path.
 * @param path of the option below its owner: `clock`.
 * @throws TypeError with the path, the accepted values and the received one.
 */
export function checkEnumerated(value: unknown, known: readonly string[], owner: string, path: string): void {
  if (value === undefined || known.includes(value as string)) return
  throw new TypeError(`${prefixOf(owner)}${path} must be one of ${known.join(', ')}; got ${JSON.stringify(value)}`)
}

function notAnObject(owner: string, path: string): TypeError {
  return new TypeError(`${prefixOf(owner)}${path || 'options'} must be an object`)
}

/** The error for an unknown member: `createGateway: limits.rpm is unknown; did you mean requestsPerMinute?`. */
export function unknownMember(name: string, known: readonly string[], owner: string, path = ''): TypeError {
  const place = IDENTIFIER.test(name) ? `${path === '' ? '' : `${path}.`}${name}` : `${path}[${JSON.stringify(name)}]`
  const nearest = nearestName(name, known)
  const hint = nearest === undefined ? `; known: ${known.join(', ')}` : `; did you mean ${nearest}?`
  return new TypeError(`${prefixOf(owner)}${place} is unknown${hint}`)
}

/** What an error says behind an unknown name: `did you mean chat?`, or which names there are. */
export function hintAt(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  return nearest === undefined ? `there are ${known.join(', ')}` : `did you mean ${nearest}?`
}

const IDENTIFIER = /^[\w$]+$/

function prefixOf(owner: string): string {
  return owner === '' ? '' : `${owner}: `
}

/** Shortest text of which a name may be a part, so that `id` is not taken for a part of `width`. */
const SHORTEST_PART = 3
/** Share of a name's letters that may be wrong. */
const WRONG_SHARE = 0.4

/**
 * The known name that was meant: the same letters in another case or with dashes, else its initials (`rpm`), else the one with the
 * fewest typing mistakes, else one that contains it from the start of a word or is contained so, else the shortest that has its
 * letters in their order and few others. One that begins with it goes before one with several mistakes. Of equals the first is taken.
 * Undefined: none is near.
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
      first.mistakes > 1 && letters.length >= SHORTEST_PART
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

/** `rpm` of `requestsPerMinute`. */
function initialsOf(name: string): string {
  return name
    .replace(/(?<=.)[^A-Z]+/g, '')
    .replace(/[^A-Za-z]/g, '')
    .toLowerCase()
}

/** Is one of two names most of the other, or a part that begins with a word? `test` is no part of `gpt-5-chat-latest`. */
function isPart(one: string, other: string): boolean {
  const [short, long] = lettersOf(one).length < lettersOf(other).length ? [one, other] : [other, one]
  const letters = lettersOf(short)
  if (letters.length < SHORTEST_PART) return false
  if (isMostOf(letters, lettersOf(long))) return lettersOf(long).includes(letters)
  const words = wordsOf(long)
  return words.some((_word, index) => words.slice(index).join('').startsWith(letters))
}

/** `max` and `concurrency` of `maxConcurrency`. */
function wordsOf(name: string): string[] {
  const spaced = name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
  return spaced.toLowerCase().match(/[a-z0-9]+/g) ?? []
}

/** Has a text at least half of the letters of another? */
function isMostOf(letters: string, text: string): boolean {
  return letters.length * 2 >= text.length
}

/** Does a text have these letters, in their order, and few others? `perEndUser` has those of `perUser`. */
function hasLetters(text: string, letters: string): boolean {
  if (letters.length <= SHORTEST_PART || !isMostOf(letters, text)) return false
  let place = -1
  return [...letters].every((letter) => {
    place = text.indexOf(letter, place + 1)
    return place !== -1
  })
}

/**
 * Letters to add, take away, replace, or swap with their neighbour (optimal string alignment). Above `most` it is the difference of
 * the lengths, or more than `most`: a list of models is long, and a caller waits.
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
    // A swap may go back two rows, at the cost of one.
    if (leastOfRow > most + 1) return leastOfRow
    const free = beforeLast
    beforeLast = last
    last = current
    current = free
  }
  return last[other.length]!
}

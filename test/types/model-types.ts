import { join } from 'node:path'
import ts from 'typescript'

const ROOT = join(import.meta.dirname, '../..')

/** A type as tests ask about it. Optional members count like others; `undefined` and `null` are left out. */
export interface SeenType {
  /** Names of its members; of a union, those that any part has. */
  readonly members: readonly string[]
  /** The type of one member, by its name; undefined when there is none. */
  member(name: string): SeenType | undefined
  /** The type of a member, by a path such as `parameters.size`; an element of an array is `[]`. */
  at(path: string): SeenType | undefined
  /** As the compiler writes it. */
  readonly type: string
  /** Whether all parts are text, or a list of strings. */
  readonly isText: boolean
  /** The literals of a union, sorted as text; undefined when it takes any string or number. */
  readonly literals: readonly (string | number)[] | undefined
}

/** Reads the interfaces that an entry exports, by name, as the compiler sees them. */
export function readInterfaces(entry: string): (name: string) => SeenType {
  const config = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT)
  const file = join(ROOT, entry)
  const program = ts.createProgram([file], options)
  const checker = program.getTypeChecker()
  const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!
  const symbols = new Map(checker.getExportsOfModule(module).map((symbol) => [symbol.name, symbol]))
  return (name) => {
    const symbol = symbols.get(name)
    if (symbol === undefined) throw new Error(`${entry} exports no ${name}`)
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    return seenType(checker, checker.getDeclaredTypeOfSymbol(target))
  }
}

function seenType(checker: ts.TypeChecker, type: ts.Type): SeenType {
  const parts = partsOf(checker.getNonNullableType(type))
  const properties = parts.flatMap((part) => checker.getPropertiesOfType(part))
  const member = (name: string): SeenType | undefined => {
    const found = parts.flatMap((part) => memberTypes(checker, part, name)).map((each) => seenType(checker, each))
    return found.length < 2 ? found[0] : merged(found)
  }
  const itself: SeenType = {
    members: [...new Set(properties.map(({ name }) => name))].sort(),
    member,
    at: (path) => path.split('.').reduce<SeenType | undefined>((seen, step) => seen?.member(step), itself),
    type: checker.typeToString(type, undefined, ts.TypeFormatFlags.NoTruncation),
    isText: parts.every((part) => (part.flags & ts.TypeFlags.StringLike) !== 0),
    literals: literalsOf(parts),
  }
  return itself
}

function partsOf(type: ts.Type): readonly ts.Type[] {
  return type.isUnion() ? type.types : [type]
}

function memberTypes(checker: ts.TypeChecker, type: ts.Type, step: string): ts.Type[] {
  if (step === '[]') {
    const element = type.getNumberIndexType()
    return element === undefined ? [] : [element]
  }
  const property = checker.getPropertyOfType(type, step)
  return property === undefined ? [] : [checker.getTypeOfSymbol(property)]
}

function merged(types: readonly SeenType[]): SeenType {
  const hasAny = types.some(({ literals }) => literals === undefined)
  return {
    members: [...new Set(types.flatMap(({ members }) => members))].sort(),
    member: (name) => types.map((type) => type.member(name)).find((found) => found !== undefined),
    at: (path) => types.map((type) => type.at(path)).find((found) => found !== undefined),
    type: types.map(({ type }) => type).join(' | '),
    isText: types.every(({ isText }) => isText),
    literals: hasAny ? undefined : sorted(types.flatMap(({ literals = [] }) => literals)),
  }
}

function literalsOf(parts: readonly ts.Type[]): (string | number)[] | undefined {
  const values = parts.map((part) => (part.isStringLiteral() || part.isNumberLiteral() ? part.value : undefined))
  return values.some((value) => value === undefined) ? undefined : sorted(values.filter((value) => value !== undefined))
}

/** Each value once, in the order of their texts. */
export function sorted<Value extends string | number>(values: Iterable<Value>): Value[] {
  return [...new Set(values)].sort((one, other) => (String(one) < String(other) ? -1 : 1))
}

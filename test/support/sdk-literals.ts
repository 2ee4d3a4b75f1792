import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const PACKAGES = join(import.meta.dirname, '../../node_modules')

/** Literal of the types of an official SDK that a gateway has to recognise. */
export interface SdkLiteral {
  /** Member or type that has it: `type`, `finish_reason`, `VideoSize`. */
  readonly member: string
  readonly value: string
}

/** Members and types that are searched in a declaration file. */
export interface SdkSearch {
  /** Members whose literals decide how a request or an answer is read. */
  readonly members: readonly string[]
  /** Enums and aliases whose literals are listed by the name of the type. */
  readonly types?: readonly string[]
}

/**
 * Returns the literals of the members and types of a declaration file, each once. Literals of aliases such as `StopReason` count as those
 * of `stop_reason`.
 */
export function sdkLiterals(file: string, { members, types = [] }: SdkSearch): readonly SdkLiteral[] {
  const found = new Map<string, SdkLiteral>()
  const addOf = (member: string, type: ts.Node): void => {
    if (ts.isUnionTypeNode(type)) for (const part of type.types) addOf(member, part)
    else if (ts.isLiteralTypeNode(type) && ts.isStringLiteral(type.literal)) add(member, type.literal.text)
  }
  const add = (member: string, value: string): void => {
    found.set(`${member} ${value}`, { member, value })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isPropertySignature(node) && node.type !== undefined && ts.isIdentifier(node.name)) {
      if (members.includes(node.name.text)) addOf(node.name.text, node.type)
    } else if (ts.isTypeAliasDeclaration(node)) {
      if (types.includes(node.name.text)) addOf(node.name.text, node.type)
      else if (/StopReason$/.test(node.name.text)) addOf('stop_reason', node.type)
    } else if (ts.isEnumDeclaration(node) && types.includes(node.name.text)) {
      for (const { initializer } of node.members)
        if (initializer !== undefined && ts.isStringLiteral(initializer)) add(node.name.text, initializer.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(sourceOf(file))
  return [...found.values()]
}

/**
 * Returns the members of interfaces and classes of a declaration file, with the name of the type as `member` and the name of the member as
 * `value`.
 * @throws Error if the file declares no such type.
 */
export function sdkMembers(file: string, types: readonly string[]): readonly SdkLiteral[] {
  const found: SdkLiteral[] = []
  const missing = new Set(types)
  for (const node of sourceOf(file).statements) {
    if (!(ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node)) || node.name === undefined) continue
    if (!missing.delete(node.name.text)) continue
    for (const { name } of node.members)
      if (name !== undefined && ts.isIdentifier(name)) found.push({ member: node.name.text, value: name.text })
  }
  if (missing.size > 0) throw new Error(`${file} does not declare ${[...missing].join(', ')}`)
  return found
}

const sources = new Map<string, ts.SourceFile>()

function sourceOf(file: string): ts.SourceFile {
  const known = sources.get(file)
  if (known !== undefined) return known
  const text = readFileSync(join(PACKAGES, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true)
  sources.set(file, source)
  return source
}

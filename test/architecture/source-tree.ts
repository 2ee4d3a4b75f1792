import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import ts from 'typescript'

/** Contents of files by their path below the root, with `/`. */
export type SourceTree = ReadonlyMap<string, string>

/** Reads every TypeScript file below a folder, those with JSX too, installed packages excluded. */
export function readSourceTree(root: string): SourceTree {
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    // Declarations of what others wrote hold no code.
    (path) => /\.tsx?$/.test(path) && !path.endsWith('.d.ts') && !path.split(sep).includes('node_modules'),
  )
  return new Map(paths.sort().map((path) => [path.split(sep).join('/'), readFileSync(join(root, path), 'utf8')]))
}

/** One import, re-export or `import()` of a file. */
export interface SourceImport {
  /** As written. */
  readonly specifier: string
  /** Path of the file it names within the tree; undefined for packages. */
  readonly target: string | undefined
  /** Whether none of the import remains at run time. */
  readonly isTypeOnly: boolean
}

/** Parses a file. Node parents are set. */
export function parseSource(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(
    path,
    text,
    ts.ScriptTarget.Latest,
    true,
    path.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS,
  )
}

/** Visits every node of a file, comments excluded. */
export function visitNodes(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => visitNodes(child, visit))
}

/** By path and text: five rules ask about the same 700 files, and parsing is most of their time. */
const knownImports = new Map<string, readonly SourceImport[]>()

/** Everything a file imports. `import { type A }` counts as a run-time import, because it stays one in the output. */
export function importsOf(path: string, text: string): readonly SourceImport[] {
  const key = `${path}\0${text}`
  const imports = knownImports.get(key) ?? parsedImports(path, text)
  knownImports.set(key, imports)
  return imports
}

/** The text up to the end of the last import or re-export, with what looks like one; all of it where a call or a type imports. */
function importingPart(text: string): string {
  if (text.includes('import(')) return text
  const last = Math.max(text.lastIndexOf("from '"), text.lastIndexOf("import '"))
  const end = text.indexOf('\n', last)
  return last === -1 ? '' : text.slice(0, end === -1 ? text.length : end)
}

function parsedImports(path: string, text: string): SourceImport[] {
  const found: SourceImport[] = []
  const add = (specifier: ts.Node | undefined, isTypeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return
    const isRelative = specifier.text.startsWith('.')
    const target = isRelative ? posix.join(posix.dirname(path), specifier.text) : undefined
    found.push({ specifier: specifier.text, target, isTypeOnly })
  }
  visitNodes(parseSource(path, importingPart(text)), (node) => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, node.importClause?.isTypeOnly === true)
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false)
    }
  })
  return found
}

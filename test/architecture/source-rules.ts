import ts from 'typescript'
import { parseSource, type SourceTree, visitNodes } from './source-tree.ts'

const MAX_LINES = 800
const VAGUE_NAMES = ['utils', 'util', 'helpers', 'helper', 'common', 'types', 'misc']
const FRAMEWORKS = ['express', 'fastify', 'hono', 'nextjs']

/** Folders of `vendors/` other than vendors: shared code, and servers as data. */
const NO_VENDORS = ['shared', 'presets']

/** Ids of the vendors: their folders. */
export function vendorIds(tree: SourceTree): string[] {
  const ids = new Set<string>()
  for (const path of tree.keys()) {
    const [layer, folder, file] = path.split('/')
    if (layer === 'vendors' && folder !== undefined && file !== undefined && !NO_VENDORS.includes(folder))
      ids.add(folder)
  }
  return [...ids]
}

/** Vendor folders that have no factory: `vendors/some-vendor/some-vendor.ts` exporting `function someVendor`. */
export function vendorsWithoutFactory(tree: SourceTree): string[] {
  return vendorIds(tree).flatMap((id) => {
    const path = `vendors/${id}/${id}.ts`
    const name = id.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const isThere = new RegExp(`^export function ${name}\\b`, 'm').test(tree.get(path) ?? '')
    return isThere ? [] : [`${path}: must export function ${name}`]
  })
}

/** Files that may name vendors or frameworks: each vendor's own, each framework's own, and where all come together. */
const MAY_NAME =
  /^(?:vendors\/(?!shared\/)[^/]+\/|adapters\/(?:express|fastify|fetch|node)(?:\/|\.ts$)|catalog\/models\/|endpoints\/messages\/messages-errors\.ts$|testing\/|cli\/|index\.ts$)/

/** String literals in shared code that name a vendor or a framework. */
export function namesInSharedCode(tree: SourceTree): string[] {
  const names = [...vendorIds(tree), ...FRAMEWORKS]
  const pattern = new RegExp(`\\b(?:${names.join('|')})\\b`, 'i')
  const offences: string[] = []
  for (const [path, text] of tree) {
    if (MAY_NAME.test(path) || !pattern.test(text)) continue
    const source = parseSource(path, text)
    visitNodes(source, (node) => {
      if (!isText(node) || !pattern.test(node.text) || isModuleSpecifier(node)) return
      offences.push(`${path}:${lineOf(source, node)}: shared code names a vendor or framework: ${node.text}`)
    })
  }
  return offences
}

/** Matches code that runs in a process that serves requests to models. */
const IS_SERVING = /^(?!cli\/|client\/|console\/|testing\/)/

/** Only such text is parsed, as parsing takes nearly all of the time. */
const MAY_ASSIGN_FUNCTION = /[.\]][\w$#]*\s*(?:\?\?|\|\||&&)?=\s*(?:\(|async\b|function\b|[\w$]+\s*=>)/

/**
 * Functions that are written where they are assigned to a property. V8 allocates such a function among the old objects, so whatever it
 * refers to, a whole request with its answer, is kept until the whole heap is collected. Passing the function to a method does not.
 */
export function functionsAssignedToProperties(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    if (!IS_SERVING.test(path) || !MAY_ASSIGN_FUNCTION.test(text)) continue
    const source = parseSource(path, text)
    visitNodes(source, (node) => {
      if (!ts.isBinaryExpression(node) || !isAssignment(node.operatorToken.kind)) return
      if (!ts.isPropertyAccessExpression(node.left) && !ts.isElementAccessExpression(node.left)) return
      let right = node.right
      while (ts.isParenthesizedExpression(right)) right = right.expression
      if (ts.isArrowFunction(right) || ts.isFunctionExpression(right))
        offences.push(`${path}:${lineOf(source, node)}: a function assigned to a property becomes an old object`)
    })
  }
  return offences
}

function isAssignment(kind: ts.SyntaxKind): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment
}

type Text = ts.StringLiteralLike | ts.TemplateHead | ts.TemplateMiddle | ts.TemplateTail

function isText(node: ts.Node): node is Text {
  return ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node)
}

function isModuleSpecifier(node: ts.Node): boolean {
  return (
    ts.isImportDeclaration(node.parent) ||
    ts.isExportDeclaration(node.parent) ||
    ts.isImportTypeNode(node.parent.parent)
  )
}

/** Files that are too long, or whose name says nothing. */
export function badFiles(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    const lines = text.trimEnd().split('\n').length
    // A list of exports has one subject, however long it is.
    if (lines > MAX_LINES && path !== 'index.ts') offences.push(`${path}: ${lines} lines, ${MAX_LINES} are allowed`)
    const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.tsx?$/, '')
    if (VAGUE_NAMES.includes(name)) offences.push(`${path}: name a file after what it exports`)
    if (!/^[a-z0-9]+(?:[-.][a-z0-9]+)*$/.test(name)) offences.push(`${path}: file names are kebab-case`)
  }
  return offences
}

/** Only such text is parsed. The formatter leaves one space in it. */
const MAY_BE_UNNAMED = /\bexport (?:default|\*|=)|\bas default\b/

/** Default exports and `export *`: what a file offers is written by hand, by name. */
export function unnamedExports(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    if (!MAY_BE_UNNAMED.test(text)) continue
    const source = parseSource(path, text)
    visitNodes(source, (node) => {
      const isStar = ts.isExportDeclaration(node) && node.exportClause === undefined
      const isDefault =
        ts.isExportAssignment(node) ||
        (ts.canHaveModifiers(node) &&
          ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.DefaultKeyword) === true)
      if (isStar) offences.push(`${path}:${lineOf(source, node)}: export *`)
      if (isDefault) offences.push(`${path}:${lineOf(source, node)}: export default`)
    })
  }
  return offences
}

// Written in two pieces so that a search for the words finds only real ones.
const UNFINISHED = new RegExp(`\\b(?:${'TO'}${'DO'}|${'FIX'}${'ME'}|${'XX'}X)\\b`)

/** Lines that admit that something is missing. */
export function unfinishedWork(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    for (const [index, line] of text.split('\n').entries()) {
      if (UNFINISHED.test(line)) offences.push(`${path}:${index + 1}: ${line.trim()}`)
    }
  }
  return offences
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
}

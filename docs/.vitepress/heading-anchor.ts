/** The anchor of a heading, as code hosts make it, so that one link works in the repository and on the site. */
export function headingAnchor(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}_\- ]/gu, '')
    .replaceAll(' ', '-')
}
